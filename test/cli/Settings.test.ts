import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Layer, Option } from "effect"
import { CliOutput } from "effect/cli"
import * as LocalServers from "../../src/cli/LocalServers.ts"
import * as ModelList from "../../src/cli/ModelList.ts"
import * as ModelChoice from "../../src/cli/ModelChoice.ts"
import * as Paint from "../../src/cli/Paint.ts"
import * as Settings from "../../src/cli/Settings.ts"
import { OpenAiCompatible } from "effect-agent/providers"
import * as Vendors from "../../src/cli/Vendors.ts"

const parse = (...args: ReadonlyArray<string>) =>
  Settings.parse(args, "0", () => Effect.void).pipe(
    Effect.provide(Layer.merge(NodeServices.layer, CliOutput.layerPresenter({ present: () => Effect.void })))
  )

const parsed = (...args: ReadonlyArray<string>) => Effect.flatMap(parse(...args), Effect.fromOption)

describe("Settings", () => {
  it.effect("joins the words of the prompt, whatever stands around them", () =>
    Effect.gen(function* () {
      const { json, model, prompt } = yield* parsed("read", "--json", "a.ts", "-m", "local/rules")
      assert.deepStrictEqual([prompt, json, model], ["read a.ts", true, Option.some("local/rules")])
      assert.strictEqual((yield* parsed("--", "--json", "is a flag")).prompt, "--json is a flag")
    })
  )

  it.effect("reads names of tools, with commas and repeated", () =>
    Effect.gen(function* () {
      const { allow, deny, tools } = yield* parsed(
        "--allow",
        "write, edit",
        "--allow",
        "shell",
        "--tools",
        "read",
        "x"
      )
      assert.deepStrictEqual(
        [[...allow.tools], [...deny.tools], tools],
        [["write", "edit", "shell"], [], ["read"]]
      )
      assert.deepStrictEqual((yield* parsed("--tools", "none", "x")).tools, [])
      assert.include((yield* parsed("x")).tools, "shell")
    })
  )

  it.effect("reads rules for commands among the names of tools", () =>
    Effect.gen(function* () {
      const list = "shell(git log -n 1, 'a b'), write ,shell(make)"
      const { allow, deny } = yield* parsed("--allow", list, "--allow", "edit", "--deny", "shell( rm )", "x")
      assert.deepStrictEqual([...allow.tools], ["write", "edit"])
      assert.deepStrictEqual(allow.commands, [["git", "log", "-n", "1,", "a b"], ["make"]])
      assert.deepStrictEqual([[...deny.tools], deny.commands], [[], [["rm"]]])
    })
  )

  it.effect.each([
    ["90", 90_000],
    ["90s", 90_000],
    ["1.5m", 90_000],
    ["500ms", 500],
    ["2h", 7_200_000]
  ] as const)("reads the time %s", ([text, millis]) =>
    Effect.gen(function* () {
      const { timeout } = yield* parsed("--timeout", text, "x")
      assert.deepStrictEqual(Option.map(timeout, Duration.toMillis), Option.some(millis))
    })
  )

  it.effect("reads the options of the model", () =>
    Effect.gen(function* () {
      const none = yield* parsed("x")
      const options = ["baseUrl", "effort", "maxTokens", "temperature"] as const
      assert.deepStrictEqual(
        options.map((name) => none[name]),
        options.map(() => Option.none())
      )
      const all = ["--max-tokens", "100", "--temperature", "0", "--effort", "xhigh"]
      const given = yield* parsed(...all, "--base-url", "http://localhost:8000/v1/", "x")
      assert.deepStrictEqual(
        options.map((name) => Option.getOrUndefined<string | number>(given[name])),
        ["http://localhost:8000/v1", "xhigh", 100, 0]
      )
    })
  )

  const withVariables = (env: Readonly<Record<string, string>>) =>
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromEnv({
        env: Object.fromEntries(Object.entries(env).map(([name, text]) => [`EFFECT_AGENT_${name}`, text]))
      })
    )

  it.effect("reads variables for the flags that are not given", () =>
    Effect.gen(function* () {
      const variables = withVariables({
        BASE_URL: "http://localhost:8000/v1/",
        EFFORT: "low",
        MAX_TOKENS: "100",
        TEMPERATURE: "0.5",
        SANDBOX: "require",
        ALLOW: "write,shell(git status)",
        DENY: ""
      })
      const read = (settings: Settings.Settings) => ({
        numbers: [settings.maxTokens, settings.temperature].map(Option.getOrUndefined<number>),
        texts: [settings.baseUrl, settings.effort].map(Option.getOrUndefined<string>),
        sandbox: settings.sandbox,
        allow: [[...settings.allow.tools], settings.allow.commands],
        deny: [...settings.deny.tools]
      })
      assert.deepStrictEqual(read(yield* variables(parsed("x"))), {
        numbers: [100, 0.5],
        texts: ["http://localhost:8000/v1", "low"],
        sandbox: "require",
        allow: [["write"], [["git", "status"]]],
        deny: []
      })
      const model = ["--base-url", "http://a", "--effort", "max", "--max-tokens", "9", "--temperature", "1"]
      const tools = ["--sandbox", "off", "--allow", "edit", "--deny", "shell"]
      assert.deepStrictEqual(read(yield* variables(parsed(...model, ...tools, "x"))), {
        numbers: [9, 1],
        texts: ["http://a", "max"],
        sandbox: "off",
        allow: [["edit"], []],
        deny: ["shell"]
      })
    })
  )

  it.effect.each([
    ["BASE_URL", "localhost:8000"],
    ["EFFORT", "huge"],
    ["MAX_TOKENS", "0"],
    ["MAX_TOKENS", "many"],
    ["TEMPERATURE", "3"],
    ["SANDBOX", "on"],
    ["ALLOW", "nope"],
    ["DENY", "shell()"]
  ] as const)("refuses the variable %s with %j", ([name, text]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(withVariables({ [name]: text })(parse("x")))
      const faults = failure._tag === "ShowHelp" ? failure.errors.map(({ message }) => message) : []
      assert.match(faults.join(), new RegExp(`--${name.toLowerCase().replace("_", "-")}`))
    })
  )

  it.effect("names the levels of effort that there are", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(parse("--effort", "huge", "x"))
      const faults = failure._tag === "ShowHelp" ? failure.errors.map(({ message }) => message) : []
      assert.match(faults.join(), /--effort: "huge".*off.*minimal.*low.*medium.*high.*xhigh.*max/)
    })
  )

  it.effect.each([
    ["--base-url", "localhost:8000"],
    ["--base-url", "ftp://localhost"],
    ["--base-url", "http://"],
    ["--effort", "huge"],
    ["--effort", ""],
    ["--max-tokens", "0"],
    ["--max-tokens", "1.5"],
    ["--temperature", "warm"],
    ["--temperature", "2.1"],
    ["--temperature=-1"],
    ["--timeout", "soon"],
    ["--timeout", "0"],
    ["--max-turns", "0"],
    ["--max-turns", "many"],
    ["--tools", "read,nope"],
    ["--allow", ""],
    ["--deny", "nope"],
    ["--allow", "shell()"],
    ["--allow", "shell(git *)"],
    ["--allow", "shell(a; b)"],
    ["--allow", "shell(A=1 b)"],
    ["--allow", "shell(a"],
    ["--allow", "shell(a)b"],
    ["--allow", "write(a)"],
    ["--deny", "shell($X)"],
    ["--nope", "x"]
  ])("refuses %s %j", (args) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(parse(...args, "x")))._tag, "ShowHelp")
    })
  )
})

describe("models", () => {
  const requested = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const requests: Array<ModelList.Request> = []
    const settings = yield* Settings.parse(args, "0", (request) =>
      Effect.sync(() => void requests.push(request))
    ).pipe(
      Effect.provide(
        Layer.merge(NodeServices.layer, CliOutput.layerPresenter({ present: () => Effect.void }))
      )
    )
    return { requests, prompt: Option.getOrUndefined(Option.map(settings, ({ prompt }) => prompt)) }
  })
  const listed = (id: string, env = {}) => ModelList.list(id, env, { baseUrl: Option.none() })

  it.effect("is a command, and a word of a prompt behind another word or --", () =>
    Effect.gen(function* () {
      const [one] = (yield* requested("models", "anthropic", "--json")).requests
      assert.deepStrictEqual(one, { provider: Option.some("anthropic"), baseUrl: Option.none(), json: true })
      assert.deepStrictEqual(yield* requested("which", "models"), { requests: [], prompt: "which models" })
      assert.deepStrictEqual(yield* requested("--", "models"), { requests: [], prompt: "models" })
      assert.strictEqual((yield* Effect.flip(requested("models", "a", "b")))._tag, "ShowHelp")
    })
  )

  it.effect("lists ids with the model table and the prices", () =>
    Effect.gen(function* () {
      const rows = yield* listed("anthropic")
      assert.deepStrictEqual(
        rows.find(({ model }) => model === "claude-opus-5"),
        {
          model: "claude-opus-5",
          contextWindow: 1_000_000,
          maxOutput: 128_000,
          thinking: ["off", "low", "medium", "high", "xhigh", "max"],
          prices: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25, cacheWriteLong: 10 }
        }
      )
      // The price list has no id of this family.
      assert.include(
        rows.map(({ model }) => model),
        "Claude Haiku 5.5"
      )
    })
  )

  /** They serve the models of others, and the price list has no prices of theirs. */
  const unlisted = new Set(["vercel", "deepinfra", "sambanova", "nebius", "nvidia", "huggingface", "github"])

  it.effect("knows each provider with a key", () =>
    Effect.gen(function* () {
      for (const { id } of Vendors.companies) {
        if (!unlisted.has(id)) assert.isAbove((yield* listed(id)).length, 0, id)
        else {
          const { message } = yield* Effect.flip(listed(id))
          assert.match(
            message,
            new RegExp(`^No list of the models of ${id} is known\\. Name one as ${id}/ID,`)
          )
        }
      }
    })
  )

  it.effect("names the providers instead of an unknown one", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(listed("nobody"))
      assert.match(message, /^"nobody" is no provider with a list of models\. Providers: anthropic, openai,/)
    })
  )

  it.live("says that a local server does not answer", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(listed("ollama", { OLLAMA_HOST: "127.0.0.1:1" }))
      assert.match(message, /^ollama does not answer at http:\/\/127\.0\.0\.1:1\/v1: start it/)
      const [request] = (yield* requested("models", "vllm", "--base-url", "http://127.0.0.1:1/x/")).requests
      const elsewhere = yield* Effect.flip(ModelList.list("vllm", {}, request ?? { baseUrl: Option.none() }))
      assert.match(elsewhere.message, /^vllm does not answer at http:\/\/127\.0\.0\.1:1\/x: start it/)
    })
  )
})

describe("ModelChoice", () => {
  const choose = (env: Readonly<Record<string, string>>, model?: string, baseUrl?: string) => {
    const [named, address] = [Option.fromUndefinedOr(model), Option.fromUndefinedOr(baseUrl)]
    return ModelChoice.choose({ model: named, baseUrl: address, noDetect: true }, env)
  }

  it.effect("goes by what is named, then the environment, then keys in their order", () =>
    Effect.gen(function* () {
      const env = {
        EFFECT_AGENT_MODEL: "groq/x",
        GROQ_API_KEY: "k",
        OPENAI_API_KEY: "k",
        ANTHROPIC_API_KEY: "k"
      }
      const models = [
        yield* choose(env, "openai/gpt-5.5-mini"),
        yield* choose(env),
        yield* choose({ ...env, EFFECT_AGENT_MODEL: "" }),
        yield* choose({ OPENAI_API_KEY: "k", MISTRAL_API_KEY: "k" }),
        yield* choose({ OPENAI_API_KEY: " " }),
        yield* choose({}, "ollama/some/model:7b")
      ].map(({ model }) => model)
      assert.deepStrictEqual(models.slice(0, 2), ["openai/gpt-5.5-mini", "groq/x"])
      assert.match(models[2] ?? "", /^anthropic\//)
      assert.match(models[3] ?? "", /^openai\//)
      assert.deepStrictEqual(models.slice(4), ["local/rules", "ollama/some/model:7b"])
    })
  )

  it.effect("takes Amazon Bedrock when it is named, with a key or an account in another place", () =>
    Effect.gen(function* () {
      const named = "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
      for (const env of [{ AWS_BEARER_TOKEN_BEDROCK: "k" }, { AWS_ACCESS_KEY_ID: "k" }, {}])
        assert.strictEqual((yield* choose(env, named)).model, named)
      assert.strictEqual((yield* choose({ AWS_BEARER_TOKEN_BEDROCK: "k", CI: "1" })).model, "local/rules")
    })
  )

  it.effect.each([
    ["gpt-5.5", /provider\/id, not "gpt-5.5"\. Providers: anthropic, openai,/],
    ["nobody/x", /Providers: /],
    ["openai/", /provider\/id/],
    ["local/model", /provider\/id/],
    ["groq/x", /^groq needs a key: set GROQ_API_KEY\.$/],
    ["openai-chat/x", /^openai-chat needs a key: set OPENAI_API_KEY\.$/]
  ] as const)("says what is wrong with %s", ([model, said]) =>
    Effect.gen(function* () {
      assert.match((yield* Effect.flip(choose({}, model))).message, said)
    })
  )
})

describe("--base-url", () => {
  const choose = (model: Option.Option<string>, env: Readonly<Record<string, string>> = {}) =>
    ModelChoice.choose({ model, baseUrl: Option.some("http://127.0.0.1:1/v1"), noDetect: false }, env)

  it.effect("goes with a model that is named, or that a key chooses", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* choose(Option.some("vllm/x"))).model, "vllm/x")
      assert.strictEqual(
        (yield* choose(Option.none(), { GROQ_API_KEY: "k" })).model,
        "groq/openai/gpt-oss-120b"
      )
    })
  )

  it.effect("is refused without a model that a server runs, and no server is looked for", () =>
    Effect.gen(function* () {
      for (const model of [Option.none(), Option.some("local/rules")]) {
        assert.match((yield* Effect.flip(choose(model))).message, /^--base-url needs a model .* --model/)
      }
    })
  )
})

describe("Vendors", () => {
  it("are all presets of the library", () => {
    const known = [...Vendors.companies, ...Vendors.servers].map(({ id }) => id)
    assert.deepStrictEqual(
      Object.values(OpenAiCompatible.presets).filter(({ id }) => !known.includes(id)),
      []
    )
    for (const { apiKeyName, id } of Object.values(OpenAiCompatible.presets)) {
      const company = Vendors.companies.find((company) => company.id === id)
      assert.deepStrictEqual(company?.keyNames ?? [], apiKeyName === undefined ? [] : [apiKeyName], id)
    }
  })
})

describe("Local servers", () => {
  const [ollama] = Vendors.servers
  it.each([
    ["", "http://127.0.0.1:11434/v1", 11434],
    ["example.com", "http://example.com:11434/v1", 11434],
    ["127.0.0.1:8080", "http://127.0.0.1:8080/v1", 8080],
    ["127.0.0.1:80", "http://127.0.0.1/v1", 80],
    ["[::1]", "http://[::1]:11434/v1", 11434],
    ["[::1]:80/", "http://[::1]/v1", 80],
    ["0.0.0.0", "http://127.0.0.1:11434/v1", 11434],
    ["http://localhost", "http://localhost/v1", 80],
    ["https://localhost", "https://localhost/v1", 443],
    ["https://localhost:8443", "https://localhost:8443/v1", 8443]
  ] as const)("OLLAMA_HOST=%s", (host, address, port) => {
    const url = ollama?.baseUrl({ OLLAMA_HOST: host }) ?? ""
    assert.strictEqual(url, address)
    assert.strictEqual(LocalServers.portOf(new URL(url)), port)
  })
})

describe("Colours", () => {
  it.each([
    [{}, [true, false]],
    [{ NO_COLOR: "1" }, [false, false]],
    [{ FORCE_COLOR: "1" }, [true, true]],
    [{ FORCE_COLOR: "0" }, [false, false]],
    [{ FORCE_COLOR: "" }, [true, false]],
    [{ FORCE_COLOR: "", NO_COLOR: "1" }, [false, false]]
  ] as const)("with %j on a terminal, and without one", (env, wanted) => {
    const found = [true, false].map((isTerminal) => Paint.wanted({ isTerminal, flag: true, env }))
    assert.deepStrictEqual(found, [...wanted])
  })
})
