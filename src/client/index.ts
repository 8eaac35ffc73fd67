/**
 * A client of the server, for Node and for browsers: sessions and agents at the server, by the names of `Agent`.
 *
 * @since 0.2.0
 */
export * as AgentClient from "./AgentClient.ts"
export * as ClientError from "./ClientError.ts"
export * as RemoteAgent from "./RemoteAgent.ts"
export * as RemoteRuns from "./RemoteRuns.ts"
