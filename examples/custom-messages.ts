import { Schema } from "effect"
import { Message } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { ScriptedProvider } from "effect-agent/testing"

const Note = Message.customKind("note", Schema.Struct({ author: Schema.String, text: Schema.String }))

const agent = createAgent({
  // An answer that repeats what the model has read.
  provider: ScriptedProvider.layer([], {
    exhausted: ({ messages }) => ScriptedProvider.text(messages.map(Message.textOf).join(" "))
  }),
  model: "any",
  hooks: {
    // Without this hook the model reads nothing of the note.
    toModelMessages: ({ messages }) =>
      messages.flatMap((message) => {
        if (Note.is(message)) return [Message.user(`${message.data.author} noted: ${message.data.text}.`)]
        return message.role === "custom" ? [] : [message]
      })
  }
})

const note = Note.make({ author: "Ada", text: "no milk" })
const { text } = await agent.prompt([note, Message.user("Order coffee.")])
console.log(text)
console.log((await agent.messages()).filter(Note.is).map(({ data }) => data.author))
await agent.close()
// => Ada noted: no milk. Order coffee.
// => [ 'Ada' ]
