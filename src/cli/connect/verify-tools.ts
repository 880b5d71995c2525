/** Asks a gateway for its tools over MCP, as a client with the written settings does. */
import { spawn } from 'node:child_process'
import { systemClock } from '../../platform/clock.ts'
import { version } from '../../version.ts'
import { type Called, CommandError } from '../command-error.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { linesOf } from '../mcp-bridge/mcp-bridge-lines.ts'
import { fieldAt, jsonOf } from '../mcp-bridge/mcp-bridge-message.ts'
import { carryReply } from '../mcp-bridge/mcp-bridge-reply.ts'

/** Maximum time of one check. A program that a client starts loads Node and fetches a token first. */
export const checkMs = 20_000
const stderrMaxChars = 4_000

const protocolVersion = '2025-11-25'
const clientInfo = { name: 'brigade-connect', version }
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo } }
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
const listTools = { jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} }

/** Returns the number of tools at the URL. Throws CommandError. */
export async function toolsAt(url: string, credential: string, called: Called): Promise<number> {
  const fetchGateway = gatewayFetch(called.baseUrl, checkMs)
  const ask = async (message: { readonly id: number }): Promise<unknown> => {
    const headers = {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': protocolVersion,
    }
    const reply = await fetchGateway(url, { method: 'POST', headers, body: JSON.stringify(message) })
    return carryReply(reply, message.id, async () => undefined, called)
  }
  resultOf(await ask(initialize))
  return countIn(await ask(listTools))
}

/** Starts the program as a client does, and returns the number of tools that it offers. Throws CommandError. */
export async function toolsOf([command = '', ...args]: readonly string[]): Promise<number> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const stop = systemClock.after(checkMs, () => child.kill())
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-stderrMaxChars)
  })
  const failed = new Promise<never>((_resolve, reject) => child.once('error', reject))
  failed.catch(() => undefined)
  // The program may end before it has read everything. Its answer, or its missing answer, says why.
  child.stdin.on('error', () => undefined)
  child.stdin.write([initialize, initialized, listTools].map(message => `${JSON.stringify(message)}\n`).join(''))
  try {
    const answer = await Promise.race([failed, answerIn(child.stdout)])
    if (answer === undefined) throw new CommandError(lastLine(said) || `${command} ended without an answer.`)
    return countIn(answer)
  } finally {
    stop()
    child.kill()
  }
}

/** Returns the answer to `listTools`, or the first error. Undefined when the output ends before. */
async function answerIn(output: Parameters<typeof linesOf>[0]): Promise<unknown> {
  for await (const line of linesOf(output)) {
    const message = line === null ? undefined : jsonOf(line.toString())
    if (fieldAt(message, 'error') !== undefined || fieldAt(message, 'id') === listTools.id) return message
  }
  return undefined
}

function resultOf(answer: unknown): unknown {
  const message = fieldAt(fieldAt(answer, 'error'), 'message')
  if (message !== undefined) throw new CommandError(String(message))
  return fieldAt(answer, 'result')
}

function countIn(answer: unknown): number {
  const tools = fieldAt(resultOf(answer), 'tools')
  if (!Array.isArray(tools)) throw new CommandError('the gateway answered without a list of tools.')
  return tools.length
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}
