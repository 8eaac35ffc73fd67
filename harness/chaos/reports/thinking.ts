/**
 * Thinking that a server told, in its next request, and what the servers count.
 */
import { Effect } from "effect"
import { OpenAiCompatible } from "effect-agent/providers"
import { events } from "../../../test/providers/server.ts"
import type { Report } from "./Report.ts"
import { talk } from "./talk.ts"

const { presets } = OpenAiCompatible
const delta = (fields: object, finish: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta: fields, finish_reason: finish, ...more }]
})
const done = events(delta({ content: "done" }, "stop"))

/** The thinking of an answer, and its members in the next request. */
const told: Readonly<Record<string, readonly [fields: object, members: string]>> = {
  reasoning_content: [{ reasoning_content: "plan" }, "reasoning_content"],
  reasoning: [{ reasoning: "plan" }, "reasoning"],
  reasoning_details: [
    { reasoning: "plan", reasoning_details: [{ type: "reasoning.text", text: "plan", index: 0 }] },
    "reasoning_details"
  ]
}

/** The servers that want thinking elsewhere than where they told it. */
const elsewhere: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  deepSeek: { reasoning: "reasoning_content", reasoning_details: "reasoning_details, reasoning_content" },
  kimi: { reasoning: "reasoning_content", reasoning_details: "reasoning_details, reasoning_content" },
  xai: { reasoning_content: "none", reasoning: "none" }
}

const servers = [
  ["", { id: "acme" }],
  ...(
    [
      "openRouter",
      "deepSeek",
      "kimi",
      "ollama",
      "llamaCpp",
      "vllm",
      "lmStudio",
      "fireworks",
      "together",
      "zai",
      "miniMax",
      "groq",
      "qwen",
      "xai",
      "mistral",
      "nvidia",
      "cerebras",
      "vercel",
      "baseten",
      "huggingFace",
      "deepInfra"
    ] as const
  ).map((name) => [name, presets[name]] as const)
] as const

const replayed = (server: OpenAiCompatible.Preset | { readonly id: string }, fields: object) =>
  Effect.map(
    talk({
      layer: (origin) => OpenAiCompatible.layer({ ...server, baseUrl: `${origin}/v1` }),
      model: "model" in server && server.model !== undefined ? server.model : "m",
      answers: [
        events(
          delta(fields),
          delta({
            tool_calls: [
              { index: 0, id: "abc123xyz", type: "function", function: { name: "echo", arguments: "{}" } }
            ]
          }),
          delta({}, "tool_calls")
        ),
        done
      ]
    }),
    ({ bodies }) => {
      const said = bodies.at(-1)?.messages.find(({ role }: any) => role === "assistant") ?? {}
      const members = Object.keys(said).filter((name) => name.startsWith("reasoning"))
      return members.length === 0 ? "none" : members.join(", ")
    }
  )

const replays: ReadonlyArray<Report> = servers.flatMap(([name, server]) =>
  Object.entries(told).map(([field, [fields, members]]) => ({
    source:
      name === "deepSeek" && field === "reasoning_details"
        ? "UKGovernmentBEIS/inspect_ai#4079"
        : "karthink/gptel#1118",
    input: `Thinking of ${name === "" ? "any server" : name} in ${field}`,
    seen: replayed(server, fields),
    right: elsewhere[name]?.[field] ?? members
  }))
)

const tokens = { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050 }
const cached = { ...tokens, prompt_tokens_details: { cached_tokens: 800 } }

/** The right: tokens in and out, read from a cache and written to one. */
const usages: ReadonlyArray<readonly [source: string, input: string, usage: object, right: string]> = [
  ["", "OpenAI", cached, "1000 50 800 0"],
  ["earendil-works/pi#8075", "Kimi", { ...tokens, cached_tokens: 800 }, "1000 50 800 0"],
  [
    "",
    "DeepSeek",
    { ...tokens, prompt_cache_hit_tokens: 800, prompt_cache_miss_tokens: 200 },
    "1000 50 800 0"
  ],
  [
    "",
    "LiteLLM",
    {
      ...tokens,
      cache_read_input_tokens: 800,
      cache_creation_input_tokens: 100,
      prompt_tokens_details: { cached_tokens: null }
    },
    "1000 50 800 100"
  ],
  [
    "",
    "DashScope",
    { ...tokens, prompt_tokens_details: { cached_tokens: 800, cache_creation_input_tokens: 100 } },
    "1000 50 800 100"
  ],
  ["", "Vercel", { ...cached, cache_creation_input_tokens: 100 }, "1000 50 800 100"],
  [
    "",
    "null for details",
    { ...tokens, prompt_tokens_details: null, completion_tokens_details: null },
    "1000 50 0 0"
  ],
  [
    "",
    "the names of Responses",
    { input_tokens: 1000, output_tokens: 50, total_tokens: 1050 },
    "1000 50 0 0"
  ],
  ["", "null for counts", { prompt_tokens: null, completion_tokens: null, total_tokens: 0 }, "none"],
  [
    "",
    "thinking beside the output, as xAI counts",
    { ...tokens, total_tokens: 1070, completion_tokens_details: { reasoning_tokens: 20 } },
    "1000 70 0 0"
  ]
]

const counted = (last: object) =>
  Effect.map(
    talk({
      layer: (origin) => OpenAiCompatible.layer({ id: "acme", baseUrl: `${origin}/v1` }),
      model: "m",
      answers: [events(delta({ content: "x" }), last)]
    }),
    ({ answer }) => {
      const usage = answer?.usage
      return usage === undefined
        ? "none"
        : [usage.input, usage.output, usage.cacheRead, usage.cacheWrite].join(" ")
    }
  )

export const reports: ReadonlyArray<Report> = [
  ...replays,
  ...usages.map(([source, input, usage, right]) => ({
    source,
    input: `Usage: ${input}`,
    seen: counted({ ...delta({}, "stop"), usage }),
    right
  })),
  {
    source: "earendil-works/pi#2017",
    input: "Usage: in the choice",
    seen: counted(
      delta({}, "stop", { usage: { prompt_tokens: 10, completion_tokens: 2, cached_tokens: 8 } })
    ),
    right: "10 2 8 0"
  }
]
