#!/usr/bin/env python3
"""The bill of materials of the program in CycloneDX 1.5: every crate in it, and in the components that it embeds.

    scripts/sbom.py OUT.json

What is in is what `cargo tree` says is compiled in, without what only builds or tests need; hashes are those of Cargo.lock.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM, PROGRAM_TARGET = "plimsoll", "x86_64-unknown-linux-gnu"
GUEST_TARGET = "wasm32-unknown-unknown"


def guests():
    """Packages whose components are embedded: all in these folders."""
    manifests = sorted([*ROOT.glob("providers/*/Cargo.toml"), *ROOT.glob("expanders/*/Cargo.toml")])
    return [tomllib.loads(path.read_text())["package"]["name"] for path in manifests]


def compiled_in(packages, target):
    """Name, version and licence of every crate that these packages hold."""
    command = [os.environ.get("CARGO", "cargo"), "tree", "--locked", "--edges", "normal", "--target", target]
    command += ["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]
    for package in packages:
        command += ["--package", package]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    crates = set()
    for line in filter(None, lines):
        crate, licence = line.split("|")
        name, version = crate.split(" ")[:2]
        crates.add((name, version.removeprefix("v"), licence.removesuffix(" (*)")))
    return crates


def component(crate, hashes):
    name, version, licence = crate
    purl = f"pkg:cargo/{name}@{version}"
    told = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
    if licence:
        told["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if (name, version) in hashes:
        told["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
    return told


def main(out):
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    hashes = {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
    crates = compiled_in([PROGRAM], PROGRAM_TARGET) | compiled_in(guests(), GUEST_TARGET)
    program = next(crate for crate in crates if crate[0] == PROGRAM)
    components = [component(crate, hashes) for crate in sorted(crates - {program})]
    # Equal programs have equal bills: the number is made of what is in it.
    number = hashlib.sha256(json.dumps(components).encode()).hexdigest()
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number[:8]}-{number[8:12]}-4{number[13:16]}-8{number[17:20]}-{number[20:32]}",
        "version": 1,
        "metadata": {"component": {**component(program, hashes), "type": "application"}},
        "components": components,
    }
    pathlib.Path(out).write_text(json.dumps(bill, indent=1) + "\n")
    print(f"sbom: {len(components)} crates", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("sbom.py OUT.json")
    main(sys.argv[1])
