# Keisei's page and its board, for a CPU. Only your own machine can reach it when it is published like this:
#
#   docker build -t keisei .
#   docker run --rm -it -p 127.0.0.1:8000:8000 keisei
#
# Then open the address that it prints. Other commands: docker run --rm -it keisei keisei play
FROM python:3.11-slim

WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY keisei keisei
# PyTorch's own index has a build for CPUs: without the gigabytes of CUDA that PyPI's brings along.
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt .

# Nothing runs as root; ./runs is /home/keisei/runs, where a folder of yours may be mounted.
RUN useradd --uid 1000 --create-home keisei
USER keisei
WORKDIR /home/keisei

# In the container it must listen beyond loopback, so it makes a token and prints an address with it.
EXPOSE 8000
CMD ["keisei", "serve", "--host", "0.0.0.0", "--port", "8000", "--allow-host", "localhost", "--no-open"]
