/**
 * Removes the finished executions of `AgentRun` from the tables of the cluster.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as SqlTransaction from "../../sql/SqlTransaction.ts"
import { AgentRun } from "../AgentRun.ts"

/** The entity in which the workflow engine of Effect 4.1 keeps the executions of a workflow, and the tag of the request of an execution. */
const typeOf = (workflow: string) => `Workflow/${workflow}`
const run = "run"
/** The execution that waits for another one. The payload of that one has it in a member of the engine. */
const Parent = Schema.Struct({ workflowName: Schema.String, executionId: Schema.String })
const readParent = Schema.decodeUnknownOption(Parent)
const readPayload = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)
const own: ReadonlyArray<string> = Object.keys(AgentRun.payloadSchema.fields)

/** An exit, which is that of a suspended execution if its value has that tag. */
const Exit = Schema.fromJsonString(
  Schema.Struct({
    _tag: Schema.String,
    value: Schema.optionalKey(Schema.Struct({ _tag: Schema.String }))
  })
)
const readExit = Schema.decodeUnknownOption(Exit)

/** Whether a stored reply is the end of an execution. One that cannot be read is none. */
const isEnd = (reply: string): boolean =>
  Option.exists(readExit(reply), ({ _tag, value }) => _tag === "Failure" || value?._tag === "Complete")

interface Row {
  readonly id: string
  readonly entity_id: string
  readonly payload: string
  readonly reply: string
}

/** Executions that one look reads. */
const most = 200

/** Removes the executions whose end is older than an id of the cluster, and returns their number. */
export const sweep = (sql: SqlClient.SqlClient, end: bigint): Effect.Effect<number, SqlError> =>
  Effect.gen(function* () {
    let count = 0
    let after = "0"
    while (true) {
      const rows = yield* sql<Row>`SELECT CAST(m.id AS TEXT) AS id, m.entity_id, m.payload, r.payload AS reply
        FROM cluster_messages m JOIN cluster_replies r ON r.request_id = m.request_id AND r.kind = 0
        WHERE m.entity_type = ${typeOf(AgentRun._tag)} AND m.tag = ${run} AND m.processed
        AND r.id < ${end} AND m.id > CAST(${after} AS BIGINT) ORDER BY m.id LIMIT ${most}`
      for (const row of rows) {
        if (!isEnd(row.reply) || (yield* isWanted(sql, row.payload))) continue
        if (yield* remove(sql, row.entity_id)) count++
      }
      const last = rows.at(-1)
      if (last === undefined) return count
      after = last.id
    }
  })

/** Whether an execution of another workflow may read the result again: it goes on. */
const isWanted = (sql: SqlClient.SqlClient, payload: string): Effect.Effect<boolean, SqlError> => {
  const members = Object.entries(Option.getOrUndefined(readPayload(payload)) ?? { unreadable: true })
  const [other, ...more] = members.filter(([name]) => !own.includes(name))
  if (other === undefined) return Effect.succeed(false)
  const parent = Option.getOrUndefined(readParent(other[1]))
  return parent === undefined || more.length > 0 ? Effect.succeed(true) : goesOn(sql, parent)
}

const goesOn = (sql: SqlClient.SqlClient, { executionId, workflowName }: typeof Parent.Type) =>
  Effect.map(
    sql<{ readonly reply: string | null }>`SELECT r.payload AS reply FROM cluster_messages m
      LEFT JOIN cluster_replies r ON r.request_id = m.request_id AND r.kind = 0
      WHERE m.entity_type = ${typeOf(workflowName)} AND m.entity_id = ${executionId} AND m.tag = ${run}`,
    (rows) => rows.some(({ reply }) => reply === null || !isEnd(reply))
  )

/** Removes an execution, unless one of its messages waits. */
const remove = (sql: SqlClient.SqlClient, executionId: string): Effect.Effect<boolean, SqlError> => {
  const its = sql`entity_type = ${typeOf(AgentRun._tag)} AND entity_id = ${executionId}`
  return SqlTransaction.run(
    sql,
    Effect.gen(function* () {
      const waiting = yield* sql`SELECT 1 FROM cluster_messages WHERE ${its} AND NOT processed LIMIT 1`
      if (waiting.length > 0) return false
      yield* sql`DELETE FROM cluster_replies WHERE request_id IN (SELECT request_id FROM cluster_messages WHERE ${its})`
      yield* sql`DELETE FROM cluster_messages WHERE ${its}`
      return true
    })
  )
}
