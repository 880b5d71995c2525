import { entryEdits, type SettingEdit, type Settings } from '../connect-edits.ts'
import {
  bridgeCommand,
  type ConnectParams,
  type ConnectPlace,
  type ConnectPlan,
  credentialCommand,
  mcpUrl,
  type PlannedFile,
  pathsOf,
  shellLine,
  tokenRefreshMs,
} from '../connect-plan.ts'

// biome-ignore lint/suspicious/noTemplateCurlyInString: Claude Code replaces the variable.
const keyReference = '${BRIGADE_KEY}'

/** Returns the plan for Claude Code. It puts servers into .claude.json or .mcp.json, and models and permissions into settings.json. */
export function connectClaudeCode(params: ConnectParams, place: ConnectPlace): ConnectPlan {
  const isProject = params.scope === 'project'
  const moved = place.env['CLAUDE_CONFIG_DIR']
  const folder = isProject ? pathsOf(place).join(place.project, '.claude') : moved || pathsOf(place).join(place.home, '.claude')
  const servers = isProject
    ? pathsOf(place).join(place.project, '.mcp.json')
    : moved
      ? pathsOf(place).join(moved, '.claude.json')
      : pathsOf(place).join(place.home, '.claude.json')
  const settings = [...(params.models === 'no' ? [] : modelEdits(params, place)), ...(params.tools && params.trustTools ? trustEdits(params, isProject) : [])]
  const server = serverOf(params, place)
  const files: PlannedFile[] = [
    ...(params.tools
      ? [
          {
            path: servers,
            format: 'jsonc' as const,
            what: 'tools of Claude Code',
            edits: entryEdits(['mcpServers', params.name], server, ['type', 'url', 'headers', 'headersHelper', 'command', 'args', 'oauth']),
            isShared: isProject,
          },
        ]
      : []),
    ...(settings.length === 0
      ? []
      : [
          {
            path: pathsOf(place).join(folder, isProject ? 'settings.local.json' : 'settings.json'),
            format: 'jsonc' as const,
            what: params.models === 'no' ? 'what Claude Code may do' : 'models of Claude Code',
            edits: settings,
            isShared: false,
          },
        ]),
  ]
  const { command, args } = bridgeCommand(params, place)
  const added =
    server['type'] === 'stdio'
      ? ['claude', 'mcp', 'add', '--scope', params.scope, params.name, '--', command, ...args]
      : [
          'claude',
          'mcp',
          'add',
          '--scope',
          params.scope,
          '--transport',
          'http',
          params.name,
          mcpUrl(params),
          '--header',
          `Authorization: Bearer ${keyReference}`,
        ]
  return {
    client: 'claude-code',
    files,
    commands: params.tools ? [shellLine(added, place.platform)] : [],
    notes: [
      ...(isProject && params.tools ? ['Claude Code asks once in this folder whether it may use the server of .mcp.json.'] : []),
      ...(params.models === 'no' ? [] : ['Claude Code then runs on the gateway instead of a subscription; --tools leaves its models as they are.']),
    ],
    needsKeyInEnvironment: params.agent === null && params.keyFile === null && (!params.bridge || params.models !== 'no'),
  }
}

function serverOf(params: ConnectParams, place: ConnectPlace): Settings {
  if (params.bridge || params.agent !== null) return { type: 'stdio', ...bridgeCommand(params, place) }
  return { type: 'http', url: mcpUrl(params), headers: { Authorization: `Bearer ${keyReference}` } }
}

function modelEdits(params: ConnectParams, place: ConnectPlace): SettingEdit[] {
  const unless = params.models === 'yes' ? {} : { unless: 'present' as const }
  const set = (path: string[], value: string): SettingEdit => ({ kind: 'set', path, value, ...unless })
  const { command, args } = credentialCommand(params, place)
  return [
    set(['env', 'ANTHROPIC_BASE_URL'], params.baseUrl),
    set(['env', 'ANTHROPIC_MODEL'], params.model),
    // Without this setting, small background calls request a model of Anthropic.
    set(['env', 'ANTHROPIC_DEFAULT_HAIKU_MODEL'], params.model),
    ...(params.agent === null ? [] : [set(['env', 'CLAUDE_CODE_API_KEY_HELPER_TTL_MS'], String(tokenRefreshMs))]),
    set(['apiKeyHelper'], shellLine([command, ...args], place.platform)),
  ]
}

function trustEdits(params: ConnectParams, isProject: boolean): SettingEdit[] {
  return [
    { kind: 'include', path: ['permissions', 'allow'], item: `mcp__${params.name}` },
    ...(isProject ? [{ kind: 'include' as const, path: ['enabledMcpjsonServers'], item: params.name }] : []),
  ]
}
