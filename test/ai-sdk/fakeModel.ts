import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart
} from "@ai-sdk/provider"

const streamOf = <Part>(parts: ReadonlyArray<Part>) =>
  new ReadableStream<Part>({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })

/** A model of version 4 that streams these parts for each call, and keeps the options of its calls. */
export const version4 = (...parts: ReadonlyArray<LanguageModelV4StreamPart>) => {
  const asked: Array<LanguageModelV4CallOptions> = []
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "fake.chat",
    modelId: "fake-4",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("the provider only streams")),
    doStream: (options) => {
      asked.push(options)
      return Promise.resolve({ stream: streamOf(parts) })
    }
  }
  return { asked, model }
}

/** A model of version 3 that streams these parts for each call, and keeps the options of its calls. */
export const version3 = (...parts: ReadonlyArray<LanguageModelV3StreamPart>) => {
  const asked: Array<LanguageModelV3CallOptions> = []
  const model: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "fake.chat",
    modelId: "fake-3",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("the provider only streams")),
    doStream: (options) => {
      asked.push(options)
      return Promise.resolve({ stream: streamOf(parts) })
    }
  }
  return { asked, model }
}

type FinishReason = Extract<LanguageModelV4StreamPart, { type: "finish" }>["finishReason"]["unified"]
type FinishReason3 = Exclude<FinishReason, "interrupted">

const noTokens = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined }
}

/** The end of an answer, with the vendor's own reason, if there is one. */
export const finish = <Unified extends FinishReason = FinishReason3>(unified: Unified, raw?: string) => ({
  type: "finish" as const,
  finishReason: { unified, raw },
  usage: noTokens
})
