/**
 * Three packages of the AI SDK, at a server of a test.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import type { AiSdk } from "effect-agent/ai-sdk"
import * as anthropic from "../../harness/differential/streams/anthropic.ts"
import type { Fixture } from "../../harness/differential/streams/Fixture.ts"
import * as google from "../../harness/differential/streams/google.ts"
import * as openAiChat from "../../harness/differential/streams/openAiChat.ts"
import * as openAiResponses from "../../harness/differential/streams/openAiResponses.ts"

const apiKey = "a key of this test"

export interface Vendor {
  readonly name: string
  /** The second has three calls. */
  readonly fixtures: ReadonlyArray<Fixture>
  /** A model at this address, which ends with a version. */
  readonly model: (baseURL: string, id?: string) => AiSdk.Model
}

export const openai: Vendor = {
  name: "@ai-sdk/openai, Responses",
  fixtures: openAiResponses.fixtures,
  model: (baseURL, id = "gpt-5-mini") => createOpenAI({ baseURL, apiKey }).responses(id)
}

export const openaiChat: Vendor = {
  name: "@ai-sdk/openai, Chat Completions",
  fixtures: openAiChat.fixtures,
  model: (baseURL, id = "gpt-4.1") => createOpenAI({ baseURL, apiKey }).chat(id)
}

export const claude: Vendor = {
  name: "@ai-sdk/anthropic",
  fixtures: anthropic.fixtures,
  model: (baseURL, id = "claude-sonnet-4-5") => createAnthropic({ baseURL, apiKey })(id)
}

export const gemini: Vendor = {
  name: "@ai-sdk/google",
  fixtures: google.fixtures,
  model: (baseURL, id = "gemini-2.5-flash") => createGoogle({ baseURL, apiKey })(id)
}

export const vendors: ReadonlyArray<Vendor> = [openai, openaiChat, claude, gemini]
