/**
 * Agents in editors: the Agent Client Protocol.
 *
 * @since 0.2.0
 */
export * as AcpAgent from "./AcpAgent.ts"
export * as AcpUpdates from "./AcpUpdates.ts"
