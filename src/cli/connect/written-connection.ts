/** Reads back from a client's files how the client will call the gateway: with which address, and with which credential. */
import { isSettings, type Settings, type SettingValue, settingAt } from '../../connect/connect-edits.ts'
import type { ClientName, ConnectParams, ConnectPlan } from '../../connect/connect-plan.ts'
import { jsoncSettings } from '../../connect/formats/connect-jsonc.ts'
import { tomlSettings } from '../../connect/formats/connect-toml.ts'
import { readTextFile } from './connect-file.ts'

/** A credential as the settings name it. */
export type WrittenCredential =
  /** A text in which the client replaces references to variables, files and inputs. */
  | { readonly kind: 'text'; readonly text: string }
  /** A program that prints the credential. */
  | { readonly kind: 'program'; readonly words: readonly string[] }
  /** A command line of the shell that prints the credential. */
  | { readonly kind: 'shell'; readonly line: string }

/** How the client calls models. */
export interface WrittenModels {
  /** The URL of the endpoint that the client calls. */
  readonly url: string
  readonly format: 'chat' | 'messages' | 'responses'
  readonly credential: WrittenCredential
}

/** How the client reaches the tools: over HTTP, or through a program that it starts. */
export type WrittenTools =
  | { readonly kind: 'http'; readonly url: string; readonly credential: WrittenCredential }
  | { readonly kind: 'program'; readonly words: readonly string[] }

/** The connection that the files of a client describe. A part that they do not have is null. */
export interface WrittenConnection {
  readonly models: WrittenModels | null
  readonly tools: WrittenTools | null
}

/** Returns the connection that is in the files of the plan now. Throws ConnectError for a file that cannot be read. */
export function writtenConnection(client: ClientName, plan: ConnectPlan, { name }: ConnectParams): WrittenConnection {
  let models: WrittenModels | null = null
  let tools: WrittenTools | null = null
  for (const { path, format } of plan.files) {
    const { text } = readTextFile(path)
    const settings = format === 'toml' ? tomlSettings(text) : jsoncSettings(text)
    models ??= modelsIn(client, settings, name)
    tools ??= toolsIn(settings, name)
  }
  return { models, tools }
}

function toolsIn(settings: Settings, name: string): WrittenTools | null {
  for (const group of ['mcpServers', 'servers', 'mcp', 'mcp_servers']) {
    const entry = at(settings, [group, name])
    if (!isSettings(entry)) continue
    const { url, command, args } = entry
    const variable = entry['bearer_token_env_var']
    const header = at(entry, ['headers', 'Authorization'])
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the form in which the other clients name a variable.
    const text = typeof variable === 'string' ? '${BRIGADE_KEY}' : typeof header === 'string' ? header.replace(/^Bearer /, '') : ''
    if (typeof url === 'string') return { kind: 'http', url, credential: { kind: 'text', text } }
    const words = [...wordsOf(command), ...wordsOf(args)]
    if (words.length > 0) return { kind: 'program', words }
  }
  return null
}

function modelsIn(client: ClientName, settings: Settings, name: string): WrittenModels | null {
  if (client === 'claude-code') {
    const [url, helper] = [at(settings, ['env', 'ANTHROPIC_BASE_URL']), settings['apiKeyHelper']]
    if (typeof url !== 'string' || typeof helper !== 'string') return null
    return { url: `${url}/v1/messages`, format: 'messages', credential: { kind: 'shell', line: helper } }
  }
  if (client === 'codex') {
    const entry = at(settings, ['model_providers', name])
    if (!isSettings(entry) || typeof entry['base_url'] !== 'string') return null
    const words = [...wordsOf(at(entry, ['auth', 'command'])), ...wordsOf(at(entry, ['auth', 'args']))]
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the form in which the other clients name a variable.
    const credential: WrittenCredential = words.length > 0 ? { kind: 'program', words } : { kind: 'text', text: '${BRIGADE_KEY}' }
    return { url: `${entry['base_url']}/responses`, format: 'responses', credential }
  }
  const options = at(settings, ['provider', name, 'options'])
  if (client !== 'opencode' || !isSettings(options) || typeof options['baseURL'] !== 'string') return null
  const text = typeof options['apiKey'] === 'string' ? options['apiKey'] : ''
  return { url: `${options['baseURL']}/chat/completions`, format: 'chat', credential: { kind: 'text', text } }
}

function wordsOf(value: SettingValue | undefined): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter(word => typeof word === 'string') : []
}

function at(settings: Settings, path: readonly string[]): SettingValue | undefined {
  try {
    return settingAt(settings, path)
  } catch {
    // A part of the path has another form, so the client has no such entry.
    return undefined
  }
}
