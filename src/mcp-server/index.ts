/**
 * Tools and agents for the clients of other programs: a server of the Model Context Protocol.
 *
 * @since 0.2.0
 */
export * as AgentMcpServer from "./AgentMcpServer.ts"
