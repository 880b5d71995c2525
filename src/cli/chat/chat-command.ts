import type { Command } from 'commander'
import { addClientFlags, addExamples, type CalledGateway, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { wrongUsage } from '../command-error.ts'
import { printJson } from '../command-output.ts'
import { count } from '../option-values.ts'
import type { ChatMessage } from './chat-stream.ts'

interface ChatFlags extends ClientFlags {
  readonly model: string
  readonly system?: string
  readonly maxTokens?: number
}

/** Maximum size of a message from stdin, in characters. */
const inputMaxChars = 4_000_000

/** Adds the command `brigade chat`. */
export function addChatCommand(program: Command): void {
  const command = addClientFlags(
    program.command('chat').description('send one message to a model and print the reply as it arrives; without a text on a terminal: a conversation'),
  )
    .argument('[text]', 'the message; left out: stdin, or a conversation on a terminal')
    .option('-m, --model <id>', 'the model', 'auto')
    .option('--system <text>', 'instructions for the model')
    .option('--max-tokens <n>', 'most output tokens of a reply', count)
  addExamples(command, [
    ['brigade chat "Hello"', 'one message, to the model that Brigade chooses'],
    ['git diff | brigade chat --system "Review this change."', 'a message from a pipe'],
    ['brigade chat --model sandbox-chat', 'a conversation, until an empty line or Ctrl-D'],
  ])
  command.action((text: string | undefined, flags: ChatFlags) => withGateway(flags, gateway => chat(gateway, text, flags)))
}

async function chat(gateway: CalledGateway, text: string | undefined, flags: ChatFlags): Promise<void> {
  const system: ChatMessage[] = flags.system === undefined ? [] : [{ role: 'system', content: flags.system }]
  if (text === undefined && process.stdin.isTTY === true && flags.json !== true) {
    const { converse } = await import('./conversation.ts')
    return converse(gateway, system, flags)
  }
  const content = text ?? (await textFromStdin())
  if (content.trim() === '') throw wrongUsage('say something: brigade chat "Hello".')
  const messages: ChatMessage[] = [...system, { role: 'user', content }]
  const { bodyOf, streamReply } = await import('./chat-stream.ts')
  if (flags.json === true) return printJson(await gateway.client.json('POST', '/v1/chat/completions', { json: bodyOf(messages, flags) }))
  await streamReply(gateway.client, messages, flags)
}

async function textFromStdin(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.length > inputMaxChars) throw wrongUsage(`the message has more than ${inputMaxChars} characters.`)
  }
  return text
}
