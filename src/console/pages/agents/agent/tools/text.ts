import { count } from '../../../../ui/format/numbers.ts'

const tools = (many: number): string => (many === 1 ? '1 tool' : `${count(many)} tools`)

/** Texts about the tools of an agent. */
export const text = {
  title: 'What it may call',
  about:
    'An agent calls no tool of an MCP server until a pattern names it. A pattern is the name of a tool, or all tools of a server, those that are approved later too.',
  field: 'Patterns',
  placeholder: 'A server or a tool',
  allOf: (server: string, approved: number): string => `every tool of ${server}, ${count(approved)} now`,
  perMinute: 'Calls of tools a minute',
  perDay: 'Calls of tools a day of India',
  noLimit: 'No limit',
  wholeNumber: 'Type a whole number above 0, or leave it empty for no limit.',
  save: 'Save',
  saved: 'Saved. It applies to the next call.',
  matchesLabel: 'Patterns and what they match',
  matches: (many: number): string => (many === 0 ? 'matches no approved tool' : `matches ${tools(many)}`),
  now: (allowed: number, total: number): string => `It may call ${tools(allowed)} of ${count(total)} approved.`,
  after: (allowed: number, before: number): string =>
    allowed === before
      ? `With the changes it may call ${tools(allowed)}, as many as now.`
      : `With the changes it may call ${tools(allowed)}, now ${count(before)}.`,
  preview: 'Preview',
  previewNote: 'Nothing changes before you save',
  list: 'Tools of the agent',
  shown: 'Which tools',
  shows: { matched: 'Matched', all: 'All approved' },
  search: 'Search tools',
  searchHint: 'Part of a name',
  columns: { tool: 'Tool', why: 'Because of', price: 'Price', may: 'May it call' },
  yes: 'Allowed',
  no: 'Not allowed',
  stopped: (name: string): string => `Stopped by ${name}`,
  stoppedMeans: (name: string): string => `The agent ${name} above does not allow it. A child calls only what every agent above allows.`,
  free: 'free',
  add: 'Allow',
  remove: 'Take back',
  emptyTitle: 'No tool',
  empty: 'No pattern matches an approved tool. Choose a server or a tool above.',
  emptyAll: 'No approved tool has this name.',
  noneTitle: 'No approved tool yet',
  none: 'Owners and admins register MCP servers and approve their tools.',
  toServers: 'Open the servers',
} as const
