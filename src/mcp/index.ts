/**
 * The Model Context Protocol: tools of other programs and servers for an agent, and tools and agents for other programs.
 *
 * @since 0.2.0
 */
export * as AgentMcpServer from "./AgentMcpServer.ts"
export * as McpClient from "./McpClient.ts"
export * as McpTools from "./McpTools.ts"
