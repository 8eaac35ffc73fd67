/**
 * Providers that send requests to model vendors and servers over HTTP.
 *
 * Each of them requires an `HttpClient`, such as `FetchHttpClient.layer` of `effect/http` or `NodeHttp.layer`
 * of `effect-agent/node`. `LocalRules` requires nothing.
 *
 * @since 0.1.0
 */
export * as AmazonBedrock from "./AmazonBedrock.ts"
export * as Anthropic from "./Anthropic.ts"
export * as Google from "./Google.ts"
export * as OpenAi from "./OpenAi.ts"
export * as OpenAiCompatible from "./OpenAiCompatible.ts"
export * as VertexAi from "./VertexAi.ts"
export * as Models from "./Models.ts"
export * as Protocol from "./Protocol.ts"
export * as Protocols from "./Protocols.ts"
export * as Framing from "./Framing.ts"
export * as Auth from "./Auth.ts"
export * as AzureOpenAi from "./AzureOpenAi.ts"
export * as Credentials from "../http/Credentials.ts"
export * as Deployment from "./Deployment.ts"
export * as Transport from "./Transport.ts"
export * as ReplyWriter from "../reply/ReplyWriter.ts"
export * as LocalRules from "./LocalRules.ts"
export * as FunctionProvider from "./FunctionProvider.ts"
