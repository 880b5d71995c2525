import { entryEdits, type SettingEdit } from '../connect-edits.ts'
import { wrongUsage } from '../connect-error.ts'
import {
  bridgeCommand,
  type ConnectParams,
  type ConnectPlace,
  type ConnectPlan,
  credentialCommand,
  mcpUrl,
  pathsOf,
  shellLine,
  tokenRefreshMs,
} from '../connect-plan.ts'

/** Variables that Codex passes to a server on this machine only when the entry of the server names them. */
const passedOn = ['BRIGADE', 'BRIGADE_KEY', 'XDG_CONFIG_HOME']
const tokenTimeoutMs = 20_000

/** Returns the plan for Codex. It changes config.toml of the user or of a trusted project. */
export function connectCodex(params: ConnectParams, place: ConnectPlace): ConnectPlan {
  const isProject = params.scope === 'project'
  if (isProject && params.models === 'yes') throw wrongUsage('Codex takes its models from the file of the user only. Leave --project or --models out.')
  const folder = isProject ? pathsOf(place).join(place.project, '.codex') : place.env['CODEX_HOME'] || pathsOf(place).join(place.home, '.codex')
  const edits = [...(params.models === 'no' || isProject ? [] : modelEdits(params, place)), ...(params.tools ? toolEdits(params, place) : [])]
  const isBridge = params.bridge || params.agent !== null
  const added = isBridge
    ? ['codex', 'mcp', 'add', params.name, '--', bridgeCommand(params, place).command, ...bridgeCommand(params, place).args]
    : ['codex', 'mcp', 'add', params.name, '--url', mcpUrl(params), '--bearer-token-env-var', 'BRIGADE_KEY']
  const notes = [
    ...(isProject ? ['Codex reads the file of a project only after you have trusted the project in Codex.'] : []),
    ...(params.tools && !params.trustTools ? ['`codex exec` refuses tools that write until they are trusted: --trust-tools says so in this file.'] : []),
  ]
  return {
    client: 'codex',
    files: [{ path: pathsOf(place).join(folder, 'config.toml'), format: 'toml', what: 'models and tools of Codex', edits, isShared: isProject }],
    commands: params.tools && !isProject && !isBridge ? [shellLine(added, place.platform)] : [],
    notes,
    needsKeyInEnvironment: params.agent === null && params.keyFile === null && (!isBridge || (params.models !== 'no' && !isProject)),
  }
}

function modelEdits(params: ConnectParams, place: ConnectPlace): SettingEdit[] {
  const path = ['model_providers', params.name]
  const fields = { name: 'Brigade', base_url: `${params.baseUrl}/v1`, wire_api: 'responses' }
  const unless = params.models === 'yes' ? {} : { unless: 'present' as const }
  const chosen: SettingEdit[] = [
    { kind: 'set', path: ['model'], value: params.model, ...unless },
    { kind: 'set', path: ['model_provider'], value: params.name, ...unless },
  ]
  if (params.agent === null && params.keyFile === null)
    return [...chosen, ...entryEdits(path, { ...fields, env_key: 'BRIGADE_KEY' }, ['auth', 'experimental_bearer_token'])]
  const { command, args } = credentialCommand(params, place)
  const auth = { command, args, timeout_ms: tokenTimeoutMs, refresh_interval_ms: tokenRefreshMs }
  return [
    ...chosen,
    ...entryEdits(path, fields, ['env_key', 'env_key_instructions', 'experimental_bearer_token', 'requires_openai_auth']),
    ...entryEdits([...path, 'auth'], auth, []),
  ]
}

function toolEdits(params: ConnectParams, place: ConnectPlace): SettingEdit[] {
  const path = ['mcp_servers', params.name]
  const trusted = params.trustTools ? { default_tools_approval_mode: 'approve' } : {}
  if (!params.bridge && params.agent === null)
    return entryEdits(path, { url: mcpUrl(params), bearer_token_env_var: 'BRIGADE_KEY', ...trusted }, ['command', 'args', 'env', 'env_vars', 'cwd'])
  const { command, args } = bridgeCommand(params, place)
  return entryEdits(path, { command, args, env_vars: passedOn, ...trusted }, ['url', 'bearer_token_env_var', 'http_headers', 'env_http_headers'])
}
