/**
 * Runs that survive the process: sessions of a database that the workers of a cluster share.
 *
 * @since 0.2.0
 */
export * as AgentRun from "./AgentRun.ts"
export * as Cluster from "./Cluster.ts"
export * as DurableRuns from "./DurableRuns.ts"
export * as PeerSockets from "./PeerSockets.ts"
export * as Retention from "./Retention.ts"
