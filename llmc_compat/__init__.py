"""Everything specific to llm.c: its files, its loader, and headers that its sources compile with.

llm.c is Andrej Karpathy's GPT-2 training in C and CUDA (github.com/karpathy/llm.c).

    workspace.py                  a folder in which llm.c trains: tokenizer, shards, model, programs
    check.py, check_rules.py      whether llm.c would train on files; the rules are a table
    shards.py, evals.py, chat.py  token files, files of questions, and conversations
    checkpoint.py, convert.py     models; and models of other vocabularies and formats
    install.py, include/          headers for a checkout of llm.c
    cli.py                        the command `pybpe llmc`
"""
