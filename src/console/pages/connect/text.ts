/** The clients that the console connects. The gateway plans the first five; the others are programs of the person. */
export const clients = [
  { id: 'claude-code', label: 'Claude Code' },
  { id: 'codex', label: 'Codex' },
  { id: 'opencode', label: 'opencode' },
  { id: 'cursor', label: 'Cursor' },
  { id: 'vscode', label: 'VS Code' },
  { id: 'sdk', label: 'SDK' },
  { id: 'curl', label: 'curl' },
] as const

export type ConnectClient = (typeof clients)[number]['id']
/** A client whose settings the gateway plans. */
export type PlannedClient = Exclude<ConnectClient, 'sdk' | 'curl'>

/** Returns the client with this id. Undefined for any other text. */
export const clientOf = (id: unknown): ConnectClient | undefined => clients.find(client => client.id === id)?.id

/** Returns whether the gateway plans the settings of the client. */
export const isPlanned = (client: ConnectClient): client is PlannedClient => client !== 'sdk' && client !== 'curl'

/** Texts of the Connect panel. */
export const text = {
  title: 'Connect a client',
  close: 'Close',
  clients: 'Client',
  keyTitle: 'Give it a key',
  keyAgent: (agent: string): string =>
    `With the key, the client gets tokens of ${agent} that live for minutes. Calls count as ${agent}, and its budget and rules apply.`,
  keyHeader: (agent: string): string => `The header x-br-agent-id makes the calls those of ${agent}. Its budget and rules apply.`,
  keyPlain: 'Calls count as this key. Its limits and its budget apply.',
  keyFull: 'The key ends after 30 days. It may do everything that you may do, because it makes tokens: keep it on the machine of the client.',
  keyCalls: 'The key ends after 30 days. It calls models and manages nothing.',
  makeKey: 'Make a key for it',
  secretTitle: (name: string): string => `${name} is ready`,
  secret: 'This is the only time that the key is shown. Copy it, or download it, before you close this.',
  exportKey: 'Then in the terminal of the client',
  runTitle: 'Run one command',
  run: 'It merges the settings into the files of the client and keeps everything else in them. It needs the folder of Brigade on that machine.',
  filesTitle: 'Or write the settings yourself',
  fileHint: (many: number): string => (many === 1 ? 'One file' : `${many} files`),
  commands: 'The client can add the tools itself',
  programTitle: 'Point it at this gateway',
  program: 'Any program that speaks the API of OpenAI or Anthropic works.',
  sdks: 'Kind of SDK',
} as const
