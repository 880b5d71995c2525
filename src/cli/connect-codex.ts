import { join } from 'node:path'
import { wrongUsage } from './command-error.ts'
import { entryEdits, type SettingEdit } from './connect-edits.ts'
import { bridgeCommand, type ConnectPlace, type ConnectPlan, type ConnectWish, credentialCommand, mcpUrl, shellLine, tokenRefreshMs } from './connect-plan.ts'

/** Variables that Codex hands to a server on this machine only when its entry names them. */
const passedOn = ['BRIGADE', 'BRIGADE_KEY', 'XDG_CONFIG_HOME']
const tokenTimeoutMs = 20_000

/** Codex: config.toml, of the user or of a trusted project. */
export function connectCodex(wish: ConnectWish, place: ConnectPlace): ConnectPlan {
  const isProject = wish.scope === 'project'
  if (isProject && wish.models === 'yes') throw wrongUsage('Codex takes its models from the file of the user only. Leave --project or --models out.')
  const folder = isProject ? join(place.project, '.codex') : place.env['CODEX_HOME'] || join(place.home, '.codex')
  const edits = [...(wish.models === 'no' || isProject ? [] : modelEdits(wish, place)), ...(wish.tools ? toolEdits(wish, place) : [])]
  const isBridge = wish.bridge || wish.agent !== null
  const added = isBridge
    ? ['codex', 'mcp', 'add', wish.name, '--', bridgeCommand(wish, place).command, ...bridgeCommand(wish, place).args]
    : ['codex', 'mcp', 'add', wish.name, '--url', mcpUrl(wish), '--bearer-token-env-var', 'BRIGADE_KEY']
  const notes = [
    ...(isProject ? ['Codex reads the file of a project only after you have trusted the project in Codex.'] : []),
    ...(wish.tools && !wish.trustTools ? ['`codex exec` refuses tools that write until they are trusted: --trust-tools says so in this file.'] : []),
  ]
  return {
    client: 'codex',
    files: [{ path: join(folder, 'config.toml'), format: 'toml', what: 'models and tools of Codex', edits, isShared: isProject }],
    commands: wish.tools && !isProject && !isBridge ? [shellLine(added, place.platform)] : [],
    notes,
    needsKeyInEnvironment: wish.agent === null && wish.keyFile === null && (!isBridge || (wish.models !== 'no' && !isProject)),
  }
}

function modelEdits(wish: ConnectWish, place: ConnectPlace): SettingEdit[] {
  const path = ['model_providers', wish.name]
  const fields = { name: 'Brigade', base_url: `${wish.baseUrl}/v1`, wire_api: 'responses' }
  const unless = wish.models === 'yes' ? {} : { unless: 'present' as const }
  const chosen: SettingEdit[] = [
    { kind: 'set', path: ['model'], value: wish.model, ...unless },
    { kind: 'set', path: ['model_provider'], value: wish.name, ...unless },
  ]
  if (wish.agent === null && wish.keyFile === null)
    return [...chosen, ...entryEdits(path, { ...fields, env_key: 'BRIGADE_KEY' }, ['auth', 'experimental_bearer_token'])]
  const { command, args } = credentialCommand(wish, place)
  const auth = { command, args, timeout_ms: tokenTimeoutMs, refresh_interval_ms: tokenRefreshMs }
  return [
    ...chosen,
    ...entryEdits(path, fields, ['env_key', 'env_key_instructions', 'experimental_bearer_token', 'requires_openai_auth']),
    ...entryEdits([...path, 'auth'], auth, []),
  ]
}

function toolEdits(wish: ConnectWish, place: ConnectPlace): SettingEdit[] {
  const path = ['mcp_servers', wish.name]
  const trusted = wish.trustTools ? { default_tools_approval_mode: 'approve' } : {}
  if (!wish.bridge && wish.agent === null)
    return entryEdits(path, { url: mcpUrl(wish), bearer_token_env_var: 'BRIGADE_KEY', ...trusted }, ['command', 'args', 'env', 'env_vars', 'cwd'])
  const { command, args } = bridgeCommand(wish, place)
  return entryEdits(path, { command, args, env_vars: passedOn, ...trusted }, ['url', 'bearer_token_env_var', 'http_headers', 'env_http_headers'])
}
