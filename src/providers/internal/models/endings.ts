/** The days on which vendors turn models off, with sources as of `Models.readOn`. */

/** Days as `YYYY-MM-DD`, with the pattern of the models that end then. */
const endings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // @anthropic-ai/sdk@1.14.0 internal/data/deprecated-models.js
  anthropic: {
    "2026-06-30": "claude-mythos-preview",
    "2026-11-30": String.raw`claude-sonnet-4[-.]5(?!\d)`,
    "2027-01-22": String.raw`claude-opus-4[-.]5(?!\d)`
  },
  // openai@7.57.0 resources/shared.d.ts
  openai: {
    "2026-02-12": "codex-mini",
    "2026-02-17": "chatgpt-4o",
    "2026-03-26": "^gpt-4-(?:0125|turbo-preview|0314)",
    "2026-05-07": "^gpt-4o-(?:mini-)?audio",
    "2026-07-23": String.raw`^gpt-(?:5\.1-codex$|5(?:\.1)?-chat|4o-(?:mini-)?search)`,
    "2026-08-10": String.raw`^gpt-5\.[23]-chat`,
    "2026-09-28": String.raw`gpt-3\.5-turbo-1106`,
    "2026-10-23":
      "^(?:gpt-4(?:-0613|-turbo|-1106-preview)?$|gpt-4-turbo|gpt-3\\.5-turbo(?:-0125)?$|gpt-4\\.1-nano|gpt-4o-2024-05-13|o4-mini(?!-d)|o3-mini|o1(?!-))",
    "2026-12-11": "^(?:gpt-5(?:-mini|-nano)?|o3)(?:-20|$)",
    "2027-01-14": String.raw`^gpt-4(?:\.1(?!-nano)|o(?:-mini)?(?:-20|$))`,
    "2027-01-20": "^gpt-audio-mini",
    "2027-04-01": String.raw`^gpt-5\.(?:4-nano|1$|1-2)`
  },
  // dev.to/aihubmix fixing-requires-adaptive-thinking-2013
  minimax: { "2026-11-18": String.raw`minimax-m2` }
}

/** The day on which a vendor turns a model off, `undefined` if none is announced. */
export const endOf = (
  vendor: string | undefined,
  matches: (pattern: string) => boolean
): string | undefined =>
  Object.entries(endings[vendor ?? ""] ?? {}).find(([, pattern]) => matches(pattern))?.[0]
