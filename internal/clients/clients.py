"""Prints how Python's clients understand responses, one line of JSON per client and URL:

    python3 clients.py URL...

A client that retries sleeps for its wait. Here time.sleep records the wait and returns at once.
"""

import json
import sys
import time

import httpx
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

RETRIES = 2


def urllib3(url):
    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=Retry(RETRIES)))
    session.get(url)


def with_httpx(url):
    httpx.Client(transport=httpx.HTTPTransport(retries=RETRIES)).get(url)


waits = []
time.sleep = waits.append

for url in sys.argv[1:]:
    for name, call in {"urllib3 Retry, with requests": urllib3, "httpx": with_httpx}.items():
        waits.clear()
        try:
            call(url)
        except requests.exceptions.RetryError:
            pass  # all attempts were denied
        print(json.dumps({"name": name, "url": url, "waits": [round(1000 * wait) for wait in waits]}))
