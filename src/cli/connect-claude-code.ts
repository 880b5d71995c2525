import { join } from 'node:path'
import { entryEdits, type SettingEdit, type Settings } from './connect-edits.ts'
import {
  bridgeCommand,
  type ConnectPlace,
  type ConnectPlan,
  type ConnectWish,
  credentialCommand,
  mcpUrl,
  type PlannedFile,
  shellLine,
  tokenRefreshMs,
} from './connect-plan.ts'

// biome-ignore lint/suspicious/noTemplateCurlyInString: Claude Code puts the variable in.
const keyReference = '${BRIGADE_KEY}'

/** Claude Code: servers in .claude.json or .mcp.json, models and permissions in settings.json. */
export function connectClaudeCode(wish: ConnectWish, place: ConnectPlace): ConnectPlan {
  const isProject = wish.scope === 'project'
  const moved = place.env['CLAUDE_CONFIG_DIR']
  const folder = isProject ? join(place.project, '.claude') : moved || join(place.home, '.claude')
  const servers = isProject ? join(place.project, '.mcp.json') : moved ? join(moved, '.claude.json') : join(place.home, '.claude.json')
  const settings = [...(wish.models === 'no' ? [] : modelEdits(wish, place)), ...(wish.tools && wish.trustTools ? trustEdits(wish, isProject) : [])]
  const server = serverOf(wish, place)
  const files: PlannedFile[] = [
    ...(wish.tools
      ? [
          {
            path: servers,
            format: 'jsonc' as const,
            what: 'tools of Claude Code',
            edits: entryEdits(['mcpServers', wish.name], server, ['type', 'url', 'headers', 'headersHelper', 'command', 'args', 'oauth']),
            isShared: isProject,
          },
        ]
      : []),
    ...(settings.length === 0
      ? []
      : [
          {
            path: join(folder, isProject ? 'settings.local.json' : 'settings.json'),
            format: 'jsonc' as const,
            what: wish.models === 'no' ? 'what Claude Code may do' : 'models of Claude Code',
            edits: settings,
            isShared: false,
          },
        ]),
  ]
  const { command, args } = bridgeCommand(wish, place)
  const added =
    server['type'] === 'stdio'
      ? ['claude', 'mcp', 'add', '--scope', wish.scope, wish.name, '--', command, ...args]
      : ['claude', 'mcp', 'add', '--scope', wish.scope, '--transport', 'http', wish.name, mcpUrl(wish), '--header', `Authorization: Bearer ${keyReference}`]
  return {
    client: 'claude-code',
    files,
    commands: wish.tools ? [shellLine(added, place.platform)] : [],
    notes: [
      ...(isProject && wish.tools ? ['Claude Code asks once in this folder whether it may use the server of .mcp.json.'] : []),
      ...(wish.models === 'no' ? [] : ['Claude Code then runs on the gateway instead of a subscription; --tools leaves its models as they are.']),
    ],
    needsKeyInEnvironment: wish.agent === null && wish.keyFile === null && (!wish.bridge || wish.models !== 'no'),
  }
}

function serverOf(wish: ConnectWish, place: ConnectPlace): Settings {
  if (wish.bridge || wish.agent !== null) return { type: 'stdio', ...bridgeCommand(wish, place) }
  return { type: 'http', url: mcpUrl(wish), headers: { Authorization: `Bearer ${keyReference}` } }
}

function modelEdits(wish: ConnectWish, place: ConnectPlace): SettingEdit[] {
  const unless = wish.models === 'yes' ? {} : { unless: 'present' as const }
  const set = (path: string[], value: string): SettingEdit => ({ kind: 'set', path, value, ...unless })
  const { command, args } = credentialCommand(wish, place)
  return [
    set(['env', 'ANTHROPIC_BASE_URL'], wish.baseUrl),
    set(['env', 'ANTHROPIC_MODEL'], wish.model),
    // Left out, small calls in the background ask for a model of Anthropic.
    set(['env', 'ANTHROPIC_DEFAULT_HAIKU_MODEL'], wish.model),
    ...(wish.agent === null ? [] : [set(['env', 'CLAUDE_CODE_API_KEY_HELPER_TTL_MS'], String(tokenRefreshMs))]),
    set(['apiKeyHelper'], shellLine([command, ...args], place.platform)),
  ]
}

function trustEdits(wish: ConnectWish, isProject: boolean): SettingEdit[] {
  return [
    { kind: 'include', path: ['permissions', 'allow'], item: `mcp__${wish.name}` },
    ...(isProject ? [{ kind: 'include' as const, path: ['enabledMcpjsonServers'], item: wish.name }] : []),
  ]
}
