/** Checks a client that was written: calls the gateway as the client will, with the address and the credential of its files. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { gatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { ConnectError } from '../../connect/connect-error.ts'
import type { ClientName, ConnectParams, ConnectPlan } from '../../connect/connect-plan.ts'
import type { ClientSettings } from '../client-settings.ts'
import { CommandError, commandErrorOf } from '../command-error.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { checkMs, toolsAt, toolsOf } from './verify-tools.ts'
import { type WrittenCredential, type WrittenModels, type WrittenTools, writtenConnection } from './written-connection.ts'

/** The result of the check of a client. */
export interface Checked {
  readonly client: ClientName
  /** `not_checked`: something that the client needs is not in this shell, or its settings keep another provider. */
  readonly state: 'works' | 'failed' | 'not_checked'
  /** The number of tools that it reaches. Null when it has none. */
  readonly tools: number | null
  /** The model that answered. Null when none was called. */
  readonly model: string | null
  readonly detail: string
}

/** The model of the sandbox. A call of it reaches no provider, so a check may make one. */
const freeModel = 'sandbox-chat'
const outputMaxBytes = 64 * 1024
const run = promisify(execFile)

/** Something that this shell does not have, so the check says nothing about the client. */
class Missing extends Error {}

/** Calls the gateway with the written settings of the client. Never throws: a failure is a result. */
export async function verifyClient(client: ClientName, plan: ConnectPlan, params: ConnectParams, settings: ClientSettings): Promise<Checked> {
  const parts: string[] = []
  let [tools, model]: [number | null, string | null] = [null, null]
  const outcome = (state: Checked['state'], detail: string): Checked => ({ client, state, tools, model, detail })
  try {
    const written = writtenConnection(client, plan, params)
    if (written.tools !== null) {
      tools = await toolsBy(written.tools, settings)
      parts.push(`${tools} tools`)
    }
    if (written.models !== null && isOurs(written.models, plan, params)) {
      const { who, answered } = await modelsBy(written.models, settings)
      model = answered
      parts.push(`calls models as ${who}`, ...(answered === null ? [] : [`${answered} answered`]))
    }
    return parts.length === 0 ? outcome('not_checked', 'its settings do not call this gateway.') : outcome('works', parts.join(', '))
  } catch (thrown) {
    if (thrown instanceof Missing) return outcome('not_checked', thrown.message)
    const error = commandErrorOf(thrown, settings)
    if (error instanceof CommandError || error instanceof ConnectError) return outcome('failed', error.message)
    return outcome('failed', reasonOf(thrown))
  }
}

/**
 * Returns whether the settings for models are those of the plan. A person may have kept another address or another program for the credential. Nothing is sent
 * to that address, and the program is not started.
 */
function isOurs({ url, credential }: WrittenModels, plan: ConnectPlan, { baseUrl }: ConnectParams): boolean {
  if (!url.startsWith(`${baseUrl}/`)) return false
  const planned = plan.files.flatMap(file => file.edits).find(edit => edit.kind === 'set' && edit.path.join('.') === 'apiKeyHelper')
  return credential.kind !== 'shell' || (planned?.kind === 'set' && planned.value === credential.line)
}

async function toolsBy(tools: WrittenTools, settings: ClientSettings): Promise<number> {
  if (tools.kind === 'program') {
    if (settings.credential === null) throw new Missing(notSet)
    return toolsOf(tools.words)
  }
  return toolsAt(tools.url, await credentialOf(tools.credential, settings), settings)
}

async function modelsBy({ url, format, credential: written }: WrittenModels, settings: ClientSettings): Promise<{ who: string; answered: string | null }> {
  const credential = await credentialOf(written, settings)
  const { baseUrl } = settings
  const client = gatewayClient({ baseUrl, credential, fetch: gatewayFetch(baseUrl, checkMs) })
  const { principal } = await client.json<{ principal: { kind: string; name: string } }>('GET', '/v1/me/whoami')
  const who = `${principal.kind} "${principal.name}"`
  const { data } = await client.json<{ data: { id: string; routes: { configured: boolean }[] }[] }>('GET', '/v1/models')
  const isServed = data.some(({ id, routes }) => id === freeModel && routes.some(route => route.configured))
  if (!isServed) return { who, answered: null }
  await client.json('POST', url.slice(baseUrl.length), { json: bodies[format] })
  return { who, answered: freeModel }
}

const messages = [{ role: 'user', content: 'Hello' }]
const bodies = {
  chat: { model: freeModel, max_tokens: 16, messages },
  messages: { model: freeModel, max_tokens: 16, messages },
  responses: { model: freeModel, max_output_tokens: 16, input: 'Hello' },
} as const

const notSet = 'BRIGADE_KEY is not set in this shell. Export it where the client starts.'
const variable = /\$\{(?:env:)?BRIGADE_KEY\}|\{env:BRIGADE_KEY\}/
const file = /^\{file:(.+)\}$/
const asked = /^\$\{input:/

/** Returns the credential that the client will send. Throws Missing when it comes from somewhere that is empty here. */
async function credentialOf(written: WrittenCredential, settings: ClientSettings): Promise<string> {
  if (written.kind !== 'text') {
    const [command = '', ...args] =
      written.kind === 'program' ? written.words : process.platform === 'win32' ? ['cmd', '/c', written.line] : ['sh', '-c', written.line]
    const { stdout } = await run(command, args, { timeout: checkMs, maxBuffer: outputMaxBytes }).catch((error: unknown) => {
      // printenv fails when the variable is not set, and prints nothing.
      throw reasonOf(error) === '' ? new Missing(notSet) : new CommandError(reasonOf(error))
    })
    if (stdout.trim() === '') throw new Missing(notSet)
    return stdout.trim()
  }
  const path = file.exec(written.text)?.[1]
  if (path !== undefined) return readFileSync(path, 'utf8').trim()
  const { credential, credentialFrom } = settings
  // The client asks the person for the key when it starts. The check uses the credential of this command.
  if (asked.test(written.text) && credential !== null) return credential.reveal()
  const isInEnvironment = credential !== null && credentialFrom.startsWith('BRIGADE_KEY')
  if (variable.test(written.text) && isInEnvironment) return credential.reveal()
  throw new Missing(notSet)
}

/** Returns why a program failed: the last line that it printed to stderr, or the message of the error. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof Error && 'stderr' in thrown && typeof thrown.stderr === 'string' && !('syscall' in thrown))
    return (thrown.stderr.trimEnd().split('\n').at(-1) ?? '').replace(/^brigade: /, '')
  return thrown instanceof Error ? thrown.message : String(thrown)
}
