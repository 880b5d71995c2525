import { createInterface } from 'node:readline/promises'
import type { CalledGateway } from '../client-command.ts'
import { CommandError, commandErrorOf } from '../command-error.ts'
import { plain } from '../command-output.ts'
import { styled } from '../terminal/style.ts'
import { type ChatMessage, type ChatParams, streamReply } from './chat-stream.ts'

/** Maximum number of messages of a turn. Older ones are left out. The number is odd, so that the first message is always one of the person. */
const messagesMax = 61

/** Talks with a model until an empty line, Ctrl-D, or Ctrl-C at the prompt. Ctrl-C during a reply ends the reply only. */
export async function converse({ client, settings }: CalledGateway, system: readonly ChatMessage[], params: ChatParams): Promise<void> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  let turn: AbortController | null = null
  const closed = new Promise<null>(resolve => prompt.once('close', () => resolve(null)))
  prompt.on('SIGINT', () => {
    if (turn === null) prompt.close()
    else turn.abort()
  })
  process.stderr.write(`Chat with ${plain(params.model)} at ${plain(settings.baseUrl)}. An empty line ends it.\n`)
  const turns: ChatMessage[] = []
  try {
    for (;;) {
      const text = await Promise.race([prompt.question(styled('bold', '> ')), closed])
      if (text === null || text.trim() === '') return
      turns.push({ role: 'user', content: text })
      turn = new AbortController()
      const said = await reply([...system, ...turns.slice(-messagesMax)], turn.signal)
      turn = null
      // A message without a reply is not sent again.
      if (said === null) turns.pop()
      else turns.push({ role: 'assistant', content: said })
    }
  } finally {
    prompt.close()
  }

  /** Returns the text of the reply, or null when the person stopped it or the gateway refused it. A refused credential ends the conversation. */
  async function reply(messages: readonly ChatMessage[], signal: AbortSignal): Promise<string | null> {
    try {
      return await streamReply(client, messages, params, signal)
    } catch (thrown) {
      if (signal.aborted) return null
      const error = commandErrorOf(thrown, settings)
      if (!(error instanceof CommandError) || error.status === 401) throw error
      process.stderr.write(`brigade: ${plain(error.message)}\n`)
      return null
    }
  }
}
