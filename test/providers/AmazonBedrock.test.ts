import { defaultProvider } from "@aws-sdk/credential-provider-node"
import { assert, describe, it } from "@effect/vitest"
import { SignatureV4 } from "@smithy/signature-v4"
import { ConfigProvider, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Message, ModelEvent, Provider, ProviderError, Tool } from "effect-agent"
import { AmazonBedrock, Auth } from "effect-agent/providers"
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Wire from "./bedrock.ts"
import { opened, refuse, type Seen, serve, type Server } from "./server.ts"

const region = "eu-central-1"
const account: Auth.AwsCredentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret/1" }
const model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
const request: Provider.ModelRequest = { model, messages: [Message.user("Hi")], tools: [], options: {} }

const hello = Wire.body(Wire.start, ...Wire.text(0, "Hel", "lo"), Wire.end("end_turn"), Wire.metadata)

const stream = (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" })

const greeting = serve((response) => stream(response).end(hello))

const baseUrlOf = ({ baseUrl }: Server) => baseUrl.replace(/\/v1$/, "")

const ask = <E>(layer: Layer.Layer<Provider.Provider, E>, asked = request) =>
  Effect.gen(function* () {
    const provider = yield* Provider.Provider
    return yield* Stream.runCollect(provider.stream(asked))
  }).pipe(Effect.provide(layer))

const layer = (options: Partial<AmazonBedrock.Options>) =>
  Layer.provide(AmazonBedrock.layer({ region, ...options }), FetchHttpClient.layer)

const textOf = (events: ReadonlyArray<ModelEvent.ModelEvent>) =>
  events.flatMap((event) => (event._tag === "TextDelta" ? [event.delta] : [])).join("")

const reasonOf = <E>(failure: ProviderError.ProviderError | E): ProviderError.Reason => {
  assert(failure instanceof ProviderError.ProviderError)
  return failure.reason
}

/** As the library for signatures wants it. */
class Sha256 {
  private readonly hash: Hash | Hmac
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret))
  }
  update(data: string | ArrayBuffer | ArrayBufferView) {
    this.hash.update(bytesOf(data))
  }
  digest() {
    return Promise.resolve(new Uint8Array(this.hash.digest()))
  }
  reset() {}
}

const bytesOf = (data: string | ArrayBuffer | ArrayBufferView): Buffer =>
  typeof data === "string"
    ? Buffer.from(data)
    : ArrayBuffer.isView(data)
      ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
      : Buffer.from(data)

/** The signature that AWS's own library computes for a request. */
const signatureOf = async ({ body, headers, url }: Seen, credentials: Auth.AwsCredentials) => {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials
  const [, names = ""] = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? "") ?? []
  const signer = new SignatureV4({
    service: "bedrock",
    region,
    sha256: Sha256,
    applyChecksum: false,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
  })
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(headers["x-amz-date"])) ?? []
  const signed = await signer.sign(
    {
      method: "POST",
      protocol: "http:",
      hostname: "127.0.0.1",
      path: url,
      query: {},
      headers: Object.fromEntries(names.split(";").map((name) => [name, String(headers[name])])),
      body
    },
    { signingDate: new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) }
  )
  return signed.headers["authorization"]?.split("Signature=")[1]
}

const verified = (seen: Seen, credentials: Auth.AwsCredentials) =>
  Effect.map(
    Effect.promise(() => signatureOf(seen, credentials)),
    (signature) => {
      assert.isDefined(signature)
      assert.include(seen.headers.authorization ?? "", `Credential=${credentials.accessKeyId}/`)
      assert.strictEqual(seen.headers.authorization?.split("Signature=")[1], signature)
    }
  )

describe("Amazon Bedrock", () => {
  it.effect("signs requests as AWS's own library does, for ids and ARNs", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1"
      const credentials = { ...account, sessionToken: "token/1" }
      for (const id of [model, arn]) {
        const layered = layer({ baseUrl: baseUrlOf(server), credentials, headers: { "x-team": "a  b" } })
        const events = yield* ask(layered, { ...request, model: id })
        assert.strictEqual(textOf(events), "Hello")
        assert.deepInclude(events.at(0), { provider: "amazon-bedrock", protocol: "bedrock-converse" })
      }
      const [first, second] = server.requests
      assert(first !== undefined && second !== undefined)
      assert.strictEqual(first.url, `/model/${encodeURIComponent(model)}/converse-stream`)
      assert.include(second.url, "%3Ainference-profile%2Fus.anthropic")
      assert.strictEqual(first.headers["x-amz-security-token"], "token/1")
      assert.strictEqual(first.headers.accept, "application/vnd.amazon.eventstream")
      for (const seen of server.requests) yield* verified(seen, credentials)
    })
  )

  it.effect("runs a tool that the model calls, and sends its result", () =>
    Effect.gen(function* () {
      const calling = Wire.body(
        Wire.start,
        Wire.delta(0, { reasoningContent: { text: "Look." } }),
        Wire.delta(0, { reasoningContent: { signature: "c2ln" } }),
        Wire.stop(0),
        ...Wire.call(1, "tooluse_1", "weather", '{"city":', '"Oslo"}'),
        Wire.end("tool_use"),
        Wire.metadata
      )
      const server = yield* serve((response, _, count) => {
        stream(response).end(count === 1 ? calling : hello)
      })
      const weather = Tool.make({
        name: "weather",
        description: "Says how the weather is.",
        params: Schema.Struct({ city: Schema.String }),
        execute: ({ city }) => Effect.succeed(`Rain in ${city}`)
      })
      const agent = yield* Agent.make({ model, tools: [weather] }).pipe(
        Effect.provide(layer({ baseUrl: baseUrlOf(server), credentials: account }))
      )
      assert.strictEqual((yield* agent.prompt("Oslo?")).text, "Hello")
      const { messages, toolConfig } = JSON.parse(server.requests[1]?.body ?? "")
      assert.deepStrictEqual(
        [toolConfig.tools[0].toolSpec.name, messages[1].content, messages[2].content[0]],
        [
          "weather",
          [
            { reasoningContent: { reasoningText: { text: "Look.", signature: "c2ln" } } },
            { toolUse: { toolUseId: "tooluse_1", name: "weather", input: { city: "Oslo" } } }
          ],
          { toolResult: { toolUseId: "tooluse_1", content: [{ text: "Rain in Oslo" }] } }
        ]
      )
    })
  )

  it.effect("counts tokens by the id of the model, without the geography of its profile", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        response.writeHead(200, { "content-type": "application/json" }).end('{"inputTokens":42}')
      })
      const count = Effect.flatMap(Provider.Provider, (provider) => {
        assert.isDefined(provider.countTokens)
        return provider.countTokens(request)
      })
      const counted = yield* Effect.provide(
        count,
        layer({ baseUrl: baseUrlOf(server), credentials: account })
      )
      assert.deepStrictEqual(counted, { inputTokens: 42 })
      const [seen] = server.requests
      assert(seen !== undefined)
      assert.strictEqual(seen.url, `/model/${encodeURIComponent(model.replace("us.", ""))}/count-tokens`)
      assert.deepStrictEqual(Object.keys(JSON.parse(seen.body)), ["input"])
      yield* verified(seen, account)
    })
  )

  it.effect("sends an API key as a bearer token", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      yield* ask(
        layer({ baseUrl: baseUrlOf(server), apiKey: Redacted.make("bedrock-api-key"), credentials: account })
      )
      assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer bedrock-api-key")
    })
  )

  it.effect("asks for new credentials if Bedrock refuses the last ones", () =>
    Effect.gen(function* () {
      const message = "The security token included in the request is expired"
      const server = yield* serve((response, _, count) =>
        count === 1
          ? refuse(response, 403, { message }, { "x-amzn-errortype": "ExpiredTokenException" })
          : void stream(response).end(hello)
      )
      const asked: Array<boolean> = []
      const credentials: AmazonBedrock.CredentialSource = ({ forceRefresh }) => {
        asked.push(forceRefresh)
        return Promise.resolve({ ...account, sessionToken: forceRefresh ? "new" : "old" })
      }
      assert.strictEqual(textOf(yield* ask(layer({ baseUrl: baseUrlOf(server), credentials }))), "Hello")
      assert.deepStrictEqual(asked, [false, true])
      assert.deepStrictEqual(
        server.requests.map(({ headers }) => headers["x-amz-security-token"]),
        ["old", "new"]
      )
    })
  )

  it.effect("fails without credentials, and with the words of their source", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const baseUrl = baseUrlOf(server)
      assert.strictEqual(reasonOf(yield* Effect.flip(ask(layer({ baseUrl }))))._tag, "Unauthenticated")
      const credentials = () => Promise.reject(new Error("no profile"))
      const reason = reasonOf(yield* Effect.flip(ask(layer({ baseUrl, credentials }))))
      assert.strictEqual(reason._tag, "Unauthenticated")
      assert.include(reason.detail, "no profile")
      assert.strictEqual(server.requests.length, 0)
    })
  )

  it.effect.each([
    [429, "ThrottlingException:http://internal.amazon.com/coral/", "RateLimited"],
    [400, "ValidationException", "InvalidRequest"],
    [403, "AccessDeniedException", "Forbidden"],
    [403, "UnrecognizedClientException", "Unauthenticated"],
    [404, "ResourceNotFoundException", "NotFound"],
    [408, "ModelTimeoutException", "ServerError"],
    [424, "ModelErrorException", "ServerError"],
    [429, "ModelNotReadyException", "ServerError"],
    [500, "InternalServerException", "ServerError"],
    [503, "ServiceUnavailableException", "Overloaded"],
    [400, "ServiceQuotaExceededException", "QuotaExceeded"]
  ] as const)("fails for %i %s with %s", ([status, type, tag]) =>
    Effect.gen(function* () {
      const headers = { "x-amzn-errortype": type, "x-amzn-requestid": "req-1" }
      const server = yield* serve((response) => refuse(response, status, { message: "Sorry." }, headers))
      const reason = reasonOf(
        yield* Effect.flip(ask(layer({ baseUrl: baseUrlOf(server), credentials: account })))
      )
      assert.strictEqual(reason._tag, tag)
      assert.deepInclude(reason, { status, requestId: "req-1" })
      assert.include(reason.detail, "Sorry.")
    })
  )

  it.effect("fails for an exception in the middle, without secrets in its words", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) =>
        stream(response).end(
          Wire.body(Wire.start, Wire.delta(0, { text: "Hel" }), [
            "modelStreamErrorException",
            { message: `Failed with ${account.secretAccessKey}`, originalStatusCode: 500 }
          ])
        )
      )
      const reason = reasonOf(
        yield* Effect.flip(ask(layer({ baseUrl: baseUrlOf(server), credentials: account })))
      )
      assert.strictEqual(reason._tag, "ServerError")
      assert.include(reason.detail, "Failed with")
      assert.notInclude(JSON.stringify(reason), account.secretAccessKey)
    })
  )

  it.effect("fails for a stream that breaks off", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => {
        stream(response).write(hello.subarray(0, hello.length / 2), () => response.destroy())
      })
      const reason = reasonOf(
        yield* Effect.flip(ask(layer({ baseUrl: baseUrlOf(server), credentials: account })))
      )
      assert.strictEqual(reason._tag, "StreamTruncated")
    })
  )

  it.effect("knows the servers of all partitions", () =>
    Effect.gen(function* () {
      const addressOf = (region: string) =>
        Effect.map(AmazonBedrock.make({ region }), ({ server }) => server?.address)
      assert.strictEqual(yield* addressOf("us-gov-west-1"), "bedrock-runtime.us-gov-west-1.amazonaws.com")
      assert.strictEqual(yield* addressOf("cn-north-1"), "bedrock-runtime.cn-north-1.amazonaws.com.cn")
      assert.strictEqual(yield* addressOf("us-iso-east-1"), "bedrock-runtime.us-iso-east-1.c2s.ic.gov")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})

describe("Amazon Bedrock by the environment", () => {
  const configured = (environment: Readonly<Record<string, string>>, options?: AmazonBedrock.ConfigOptions) =>
    AmazonBedrock.layerConfig(options).pipe(
      Layer.provide([FetchHttpClient.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(environment))])
    )

  it.effect("reads region, account and address", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      yield* ask(
        configured({
          AWS_DEFAULT_REGION: region,
          AWS_ACCESS_KEY_ID: account.accessKeyId,
          AWS_SECRET_ACCESS_KEY: account.secretAccessKey,
          AWS_SESSION_TOKEN: "token",
          AWS_ENDPOINT_URL_BEDROCK_RUNTIME: baseUrlOf(server)
        })
      )
      const [seen] = server.requests
      assert(seen !== undefined)
      yield* verified(seen, { ...account, sessionToken: "token" })
    })
  )

  it.effect("reads an API key, over which the credentials of the options win", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const environment = {
        AWS_REGION: region,
        AWS_BEARER_TOKEN_BEDROCK: "key-1",
        AWS_ENDPOINT_URL: baseUrlOf(server)
      }
      yield* ask(configured(environment))
      yield* ask(configured(environment, { credentials: account }))
      const [first, second] = server.requests.map(({ headers }) => headers.authorization)
      assert.strictEqual(first, "Bearer key-1")
      assert.include(second ?? "", "AWS4-HMAC-SHA256")
    })
  )

  it.effect("names the variables that are not set", () =>
    Effect.gen(function* () {
      const missing = (environment: Readonly<Record<string, string>>) =>
        Effect.map(Effect.flip(ask(configured(environment))), (error) => String(error))
      assert.include(yield* missing({}), "AWS_REGION is not set, nor is AWS_DEFAULT_REGION")
      assert.include(yield* missing({ AWS_REGION: region }), "AWS_BEARER_TOKEN_BEDROCK is not set")
    })
  )
})

describe("Amazon Bedrock with the credentials of AWS's library", () => {
  /** Sets variables of the process until the scope closes. The library reads no others. */
  const variables = (values: Readonly<Record<string, string | undefined>>) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const before = Object.keys(values).map((name) => [name, process.env[name]] as const)
        for (const [name, value] of Object.entries(values)) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
        return before
      }),
      (before) =>
        Effect.sync(() => {
          for (const [name, value] of before) {
            if (value === undefined) delete process.env[name]
            else process.env[name] = value
          }
        })
    )

  const none = {
    AWS_ACCESS_KEY_ID: undefined,
    AWS_SECRET_ACCESS_KEY: undefined,
    AWS_SESSION_TOKEN: undefined,
    AWS_PROFILE: undefined,
    AWS_EC2_METADATA_DISABLED: "true"
  }

  const home = Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "bedrock-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true }))
  )

  it.effect("takes a profile of a file", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const path = yield* home
      const file = join(path, "credentials")
      yield* Effect.promise(() =>
        writeFile(
          file,
          `[work]\naws_access_key_id = ${account.accessKeyId}\naws_secret_access_key = ${account.secretAccessKey}\n`
        )
      )
      yield* variables({
        ...none,
        HOME: path,
        AWS_SHARED_CREDENTIALS_FILE: file,
        AWS_CONFIG_FILE: join(path, "config")
      })
      const credentials = defaultProvider({ profile: "work" })
      yield* ask(layer({ baseUrl: baseUrlOf(server), credentials }))
      const [seen] = server.requests
      assert(seen !== undefined)
      yield* verified(seen, account)
    })
  )

  it.effect("takes the credentials of a container", () =>
    Effect.gen(function* () {
      const server = yield* greeting
      const path = yield* home
      const container = yield* opened(
        createServer((_, response) => {
          response.writeHead(200, { "content-type": "application/json" })
          response.end(
            JSON.stringify({
              AccessKeyId: account.accessKeyId,
              SecretAccessKey: account.secretAccessKey,
              Token: "container-token",
              Expiration: "2099-01-01T00:00:00Z"
            })
          )
        })
      )
      yield* variables({
        ...none,
        HOME: path,
        AWS_SHARED_CREDENTIALS_FILE: join(path, "credentials"),
        AWS_CONFIG_FILE: join(path, "config"),
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${container}/credentials`
      })
      yield* ask(layer({ baseUrl: baseUrlOf(server), credentials: defaultProvider() }))
      const [seen] = server.requests
      assert(seen !== undefined)
      yield* verified(seen, { ...account, sessionToken: "container-token" })
    })
  )
})
