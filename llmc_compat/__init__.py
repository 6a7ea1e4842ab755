"""Everything specific to llm.c: its files, its loader, and headers that its sources compile with.

llm.c is Andrej Karpathy's GPT-2 training in C and CUDA (github.com/karpathy/llm.c).
"""
