import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { symlinkSync, unlinkSync } from "node:fs"
import { join } from "node:path"
import * as Wire from "../providers/bedrock.ts"
import * as Program from "./program.ts"

Program.bundled()

const hello = Wire.body(Wire.start, ...Wire.text(0, "Hel", "lo"), Wire.end("end_turn"), Wire.metadata)
const args = ["--model", "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "hi"]

/** A server of Bedrock and of a container's credentials, and the signatures that Bedrock saw. */
const bedrock = Effect.gen(function* () {
  const signatures: Array<string> = []
  const url = yield* Program.server((request, _, response) => {
    if (request.url === "/credentials") {
      response.writeHead(200, { "content-type": "application/json" })
      const keys = { AccessKeyId: "AKIDCONTAINER", SecretAccessKey: "secret", Token: "token" }
      response.end(JSON.stringify({ ...keys, Expiration: "2099-01-01T00:00:00Z" }))
      return
    }
    signatures.push(String(request.headers.authorization))
    response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" }).end(hello)
  })
  const env = {
    AWS_REGION: "us-east-1",
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url,
    AWS_EC2_METADATA_DISABLED: "1"
  }
  return { env, signatures, url }
})

describe("the program with Amazon Bedrock", { timeout: 60_000 }, () => {
  it.effect("uses the key or the account of the environment", () =>
    Effect.gen(function* () {
      const { env, signatures } = yield* bedrock
      const account = { AWS_ACCESS_KEY_ID: "AKIDUSER", AWS_SECRET_ACCESS_KEY: "secret" }
      assert.strictEqual((yield* Program.run(args, { env: { ...env, ...account } })).stdout, "Hello\n")
      yield* Program.run(args, { env: { ...env, AWS_BEARER_TOKEN_BEDROCK: "key-1" } })
      assert.match(signatures[0] ?? "", /^AWS4-HMAC-SHA256 Credential=AKIDUSER\//)
      assert.strictEqual(signatures[1], "Bearer key-1")
    })
  )

  it.effect("uses the credentials of a container where AWS's library is installed", () =>
    Effect.gen(function* () {
      const { env, signatures, url } = yield* bedrock
      const container = { ...env, AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/credentials` }
      const without = yield* Program.run(args, { env: container })
      assert.strictEqual(without.code, 2)
      assert.match(without.stderr, /AWS_BEARER_TOKEN_BEDROCK is not set/)
      const installed = join(Program.bundle, "node_modules")
      yield* Effect.acquireRelease(
        Effect.sync(() => symlinkSync(join(import.meta.dirname, "../../node_modules"), installed)),
        () => Effect.sync(() => unlinkSync(installed))
      )
      assert.strictEqual((yield* Program.run(args, { env: container })).stdout, "Hello\n")
      assert.match(signatures[0] ?? "", /Credential=AKIDCONTAINER\//)
    })
  )
})
