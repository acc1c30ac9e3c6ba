"""Ten durable steps, one after another, in DBOS behind its usual HTTP door."""

import os
import sys

import uvicorn
from dbos import DBOS, SetWorkflowID
from fastapi import FastAPI, Request

app = FastAPI()
config = {"name": "ten", "run_admin_server": False}
if url := os.environ.get("DBOS_SYSTEM_DATABASE_URL"):
    config["system_database_url"] = url
DBOS(config=config)


@DBOS.step()
async def step(number: int) -> dict:
    return {"message": "x"}


@DBOS.workflow()
async def ten(event: dict) -> dict:
    last = {}
    for number in range(10):
        last = await step(number)
    return {"id": event["id"], "last": last}


@app.post("/ten")
async def start(request: Request) -> dict:
    event = await request.json()
    with SetWorkflowID(event["id"]):
        return await ten(event)


@app.get("/healthz")
async def alive() -> dict:
    return {}


DBOS.launch()
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
