/**
 * Who answers over HTTP. Each needs an `HttpClient`, such as `FetchHttpClient.layer` of `effect/http`.
 */
export * as OpenAi from "./OpenAi.ts"
export * as OpenAiCompatible from "./OpenAiCompatible.ts"
