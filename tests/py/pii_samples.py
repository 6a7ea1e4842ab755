"""A labeled set of personal data, made by hand: each item is marked as [[KIND:text]]. All items are invented, or from
the issuers' documentation. They include what the patterns are known to miss or to match wrongly (marked FALSE)."""

LABELLED = [
    # E-mail
    "Please write to [[EMAIL:ann.lee@example.com]].",
    "Ann Lee <[[EMAIL:ann_lee+news@mail.example.co.uk]]>, Bob",
    "联系邮箱：[[EMAIL:zhang.san@example.com.cn]]，谢谢。",
    "邮箱是[[EMAIL:wangwu88@163.com]]请联系",
    "mailto:[[EMAIL:info@xn--bcher-kva.example]]?subject=hi",
    "[[EMAIL:A.B-C%d@sub.domain.travel]];[[EMAIL:x@y.io]]",
    "Reach me: ann [[EMAIL:at]] example [[EMAIL:dot]] com",  # missed: obfuscated on purpose
    "user@localhost is no address that anybody can write to",
    "The decorator @property and the handle @ann_lee on a site",
    "git clone [[FALSE:git@github.example]]:ann/repo",
    "a@b, 5 @ 3.50 each, and foo@bar",
    "In LaTeX, \\makeatletter lets @ be a letter: \\@ifnextchar.",
    'icon@2x.png, logo@3x.svg and <img src="photo@1.5x.jpg">',
    "发邮件到[[EMAIL:li.si@qq.com]]或者[[EMAIL:bar@example.com]],",
    "[[EMAIL:用户@例子.公司]]",  # missed: not ASCII
    # Phones
    "手机：[[PHONE:13812345678]]，备用[[PHONE:189 1234 5678]]",
    "请致电[[PHONE:+86 138 1234 5678]]或[[PHONE:0086-13912345678]]",
    "电话：[[PHONE:010-62751234]]，传真：[[PHONE:0755-82345678]]",
    "Call [[PHONE:+1 (415) 555-2671]] or [[PHONE:(415) 555-2671]] today",
    "Tel. [[PHONE:+44 20 7946 0958]]; Fax [[PHONE:+49-30-901820]]",
    "Office: [[PHONE:415-555-2671]], home: [[PHONE:1-415-555-2672]]",
    "WhatsApp [[PHONE:+8613812345678]], [[PHONE:+33 1 23 45 67 89]]",
    "[[PHONE:(+86)13812345678]]; [[PHONE:86-13912345678]]，座机[[PHONE:(010)62751234]]、[[PHONE:021 6275 1234]]",
    "号码[[PHONE:138-1234-5678]]、[[PHONE:13912345678]]和[[PHONE:15012345678]]，热线[[PHONE:400-820-8820]]",
    "tel:[[PHONE:13812345678]],[[PHONE:13912345678]] or [[PHONE:+44 (0)20 7946 0958]]",
    "Tel.[[PHONE:13812345678]], [[PHONE:13812345678]]-[[PHONE:13912345678]]; not .13812345678, 1.13812345678",
    "传真[[PHONE:021－62751234]]",  # missed: a full-width hyphen; NFKC makes it a plain one
    "Pi gibt 3,14159265359 zurück, und 11,3321028236252 ist auch eine Zahl",
    "Ring [[PHONE:0044 20 7946 0958]]",  # missed: many other numbers begin with 00
    "Ring [[PHONE:020 7946 0958]] in London",  # mistaken for a Chinese landline, which has the same form
    "In 1998-2004 about 13812345678901 units were sold for 12345678.",
    "订单号 20231112138123456789，数量 13800",
    "ISBN 978-3-16-148410-0, DOI 10.1000/182, version 1.2.3.4567",
    "The years 1914-1918 and 1939-1945; pages 100-200-300.",
    "3.14159265358979 and 2.71828182845904 are constants, 1e-10 too",
    "Population: 1 412 600 000 in 2021, up from 1 411 780 000",
    "2023-11-12 13:45:00 +0800 is a time",
    "UUID 123e4567-e89b-12d3-a456-426614174000",
    # Chinese identity numbers
    "身份证号[[CHINESE_ID:11010519491231002X]]。",
    "ID: [[CHINESE_ID:440301198808151233]]; 证件 [[CHINESE_ID:510107199511034562]]",
    "身份证[[CHINESE_ID:310104200002290014]]（闰日）",
    "号码 110105194912310021 的校验位不对",
    "310104200102290010 has a day that does not exist",
    "流水号 123456789012345678 不是证件",
    # IP addresses
    "Failed login from [[IP_ADDRESS:203.0.113.42]] port 22",
    "server [[IP_ADDRESS:192.168.1.10]], peer [[IP_ADDRESS:10.0.0.255]]:8080",
    "IPv6 [[IP_ADDRESS:2001:db8:85a3::8a2e:370:7334]] and [[IP_ADDRESS:fe80::1]]",
    "full: [[IP_ADDRESS:2001:0db8:0000:0000:0000:ff00:0042:8329]].",
    "[[IP_ADDRESS:::ffff:198.51.100.7]] is a mapped address",
    "localhost is 127.0.0.1 or ::1, and 0.0.0.0 is any",
    "[27.4.2.3] of the standard, OID 2.5.29.32, package==1.2.3.4, netmask 255.255.255.0",
    "http://[[IP_ADDRESS:198.51.100.5]]:8080/x, [ [[IP_ADDRESS:2001:db8::1]] ]:443, [[IP_ADDRESS:198.51.100.0]]/24",
    "Ask the name server [[IP_ADDRESS:8.8.8.8]]",  # missed: four small numbers are more likely the number of a section
    "Section 1.2.3 of version 10.4, 999.1.2.3 and 1.2.3.4.5",
    "Build [[FALSE:4.18.0.205]] came out on Monday",  # mistaken for an address
    "At 12:30:45 the ratio was 3:2; std::vector<int>::iterator, a::b",
    "MAC 00:1A:2B:3C:4D:5E is no address of this kind",
    # Cards
    "Card [[CREDIT_CARD:4111 1111 1111 1111]] exp 12/29",
    "Visa [[CREDIT_CARD:4012888888881881]], MC [[CREDIT_CARD:5555-5555-5555-4444]]",
    "Amex [[CREDIT_CARD:3782 822463 10005]], Discover [[CREDIT_CARD:6011111111111117]]",
    "银行卡号：[[CREDIT_CARD:6222020200012345670]]",
    "4111 1111 1111 1112 fails the check, 0000 0000 0000 0000 too",
    "4444444444444444 repeats one digit",
    "account 1234567890123456 is no card",
    # Keys
    "OPENAI_KEY=[[API_KEY:sk-proj-abcDEF1234567890abcDEF1234567890]]",
    "token [[API_KEY:ghp_16C7e42F292c6912E7710c838347Ae178B4a]] leaked",
    "aws_access_key_id = [[API_KEY:AKIAIOSFODNN7EXAMPLE]]",
    "key: [[API_KEY:AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY]]",
    'api_key = "[[API_KEY:a1B2c3D4e5F6g7H8i9J0k1L2]]"',
    "AWS_SECRET_ACCESS_KEY=[[API_KEY:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY]]",
    "Authorization: Bearer [[API_KEY:0123456789abcdef0123456789abcdef]]",
    "API_SECRET: [[API_KEY:0f14e45fceea167a5a36dedd4bea2543]], the bearer of internationalization",
    "session token=[[API_KEY:0f14e45fceea167a5a36dedd4bea2543]]",
    "GITHUB_API_TOKEN=[[API_KEY:0f14e45fceea167a5a36dedd4bea2543]]; token: [[API_KEY:a1B2c3D4e5F6g7H8i9J0k1L2]]",
    "vocab_token: internationalization, tokens: 0f14e45fceea167a5a36dedd4bea2543",
    '"client_secret": "[[API_KEY:8f14e45fceea167a5a36dedd4bea2543]]"',
    "hf: [[API_KEY:hf_abcdefghijklmnopqrstuvwxyzABCDEF12]]",
    "Bearer [[API_KEY:eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P]]",
    "password: [[API_KEY:hunter2]]",  # missed: nothing distinguishes it from any other word
    "api_key = os.environ['SERVICE_API_KEY']",
    "access_token: string; secret_key = get_secret_key_from_vault()",
    "commit 8f14e45fceea167a5a36dedd4bea2543 fixed it",
    "a sk-learn pipeline; the risk-free rate; ask-me-anything-about-tokenizers",
    # Nothing
    "The cat sat on the mat, 42 times out of 100.",
    "今天天气很好，我们去公园散步，走了10000步，花了3.5小时。",
    "Prices rose by 3.5 % to $1,234,567.89 in Q3 2023 (n = 12,345).",
    "f(x) = x^2 + 2x + 1; for (int i = 0; i < 1000000; i++) sum += a[i];",
    "Chapter 12, verses 3-16; Gen 1:1-2:3; Matthew 5:3-12",
    "https://example.com/a/b?id=1234567890&x=20231112#top",
    "Bank holiday on 01-01-2024, 02/02/2024 and 2024.03.03",
    "1234567890 9876543210 5550123",
]
