import os

# Both are read at import. Threads of PyTorch that spin while others compute cost a factor of 100 on
# a busy machine; and slots of shared memory are handed out full of what is plainly wrong.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("KEISEI_POISON_SLOTS", "1")
