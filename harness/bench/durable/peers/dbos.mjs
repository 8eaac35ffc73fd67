// DBOS: the loop is a workflow, and each call a step; the answer of a person is a message to the workflow.
import { DBOS } from "@dbos-inc/dbos-sdk"
import { ask, begin, tick } from "./loop.mjs"

/** What is told when a run waits. */
const waiting = new Map()

export const open = async (setup) => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: setup.url, logLevel: "error", runAdminServer: false })
  const loop = async (id) => {
    const messages = [...begin]
    for (;;) {
      const answer = await DBOS.runStep(() => ask(setup, messages), { name: "model" })
      messages.push(answer)
      if (answer.tool_calls === undefined) return answer.content
      for (const { function: called, id: tool_call_id } of answer.tool_calls) {
        if (setup.asks) {
          waiting.get(id)?.()
          await DBOS.recv("approval", 36_000)
        }
        const step = () => tick(JSON.parse(called.arguments))
        messages.push({ role: "tool", tool_call_id, content: await DBOS.runStep(step, { name: "tool" }) })
      }
    }
  }
  const agent = DBOS.registerWorkflow(loop, { name: "agent" })
  await DBOS.launch()
  const start = (id) => DBOS.startWorkflow(agent, { workflowID: id })(id)
  return {
    run: async (id) => (await start(id)).getResult(),
    hold: (id) =>
      new Promise((resolve, reject) => {
        waiting.set(id, resolve)
        start(id).catch(reject)
      }),
    approve: async (id) => {
      await DBOS.send(id, true, "approval")
      return DBOS.retrieveWorkflow(id).getResult()
    }
  }
}
