# Appends one line to Harpe's audit log.
import json
import os

with open(os.environ["HARPE_AUDIT_LOG"], "a") as log:
    log.write(json.dumps({"category": "guest.test"}) + "\n")
