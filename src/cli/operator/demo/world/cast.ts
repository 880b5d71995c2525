/** Who and what the demonstration has: people, workspaces, keys, agents and models. All of it is made up. */

export interface CastMember {
  readonly name: string
  readonly role: 'owner' | 'admin' | 'member'
  readonly workspace: string
}

export const orgName = 'Neem Labs'
export const mailDomain = 'neem-labs.example'
/** The address of the owner is that of the first organisation of an installation. */
export const people: readonly CastMember[] = [
  { name: 'Asha Rao', role: 'owner', workspace: 'Platform' },
  { name: 'Vikram Shah', role: 'admin', workspace: 'Platform' },
  { name: 'Meera Nair', role: 'admin', workspace: 'Research' },
  { name: 'Arjun Das', role: 'member', workspace: 'Platform' },
  { name: 'Farah Khan', role: 'member', workspace: 'Support' },
  { name: 'Imran Ali', role: 'member', workspace: 'Support' },
  { name: 'Kavya Iyer', role: 'member', workspace: 'Research' },
  { name: 'Leela Menon', role: 'member', workspace: 'Research' },
  { name: 'Nikhil Joshi', role: 'member', workspace: 'Platform' },
  { name: 'Priya Singh', role: 'member', workspace: 'Support' },
  { name: 'Rohan Gupta', role: 'member', workspace: 'Research' },
  { name: 'Sana Mirza', role: 'member', workspace: 'Support' },
]
/** The member for whom a sign-in link is printed. */
export const memberName = 'Kavya Iyer'
export const invited = ['Tara Bose', 'Dev Patel'] as const
export const workspaces = ['Platform', 'Research', 'Support'] as const

/** Returns the address of a person. */
export const mailOf = (name: string): string => `${name.toLowerCase().replace(' ', '.')}@${mailDomain}`

export interface CastKey {
  readonly name: string
  readonly owner: string
  readonly workspace: string
  /** Calls on a working day. */
  readonly calls: number
  readonly isRevoked?: boolean
}

export const keys: readonly CastKey[] = [
  { name: 'Help desk', owner: 'Farah Khan', workspace: 'Support', calls: 60 },
  { name: 'Nightly reports', owner: 'Nikhil Joshi', workspace: 'Platform', calls: 14 },
  { name: 'Notebooks', owner: 'Rohan Gupta', workspace: 'Research', calls: 22 },
  { name: 'Search index', owner: 'Arjun Das', workspace: 'Platform', calls: 30 },
  { name: 'Old prototype', owner: 'Leela Menon', workspace: 'Research', calls: 6, isRevoked: true },
]

/** The share of an agent's budget that it has spent. Null: the agent has no budget. */
export interface CastAgent {
  readonly name: string
  readonly owner: string
  readonly parent?: string
  readonly calls: number
  readonly models: readonly string[]
  readonly spentShare?: number
  readonly isPaused?: boolean
}

const coding = ['claude-sonnet-4.5', 'gpt-5-mini'] as const
const cheap = ['gpt-5-mini', 'gemini-3-flash', 'sarvam-m'] as const
const deep = ['claude-sonnet-4.5', 'gemini-3-pro'] as const

/** A parent comes before its children. */
export const agents: readonly CastAgent[] = [
  { name: 'reviewer', owner: 'Vikram Shah', calls: 34, models: coding, spentShare: 0.8 },
  { name: 'reviewer-tests', owner: 'Vikram Shah', parent: 'reviewer', calls: 18, models: coding },
  { name: 'reviewer-security', owner: 'Vikram Shah', parent: 'reviewer', calls: 12, models: deep },
  { name: 'security-triage', owner: 'Vikram Shah', parent: 'reviewer-security', calls: 5, models: cheap },
  { name: 'release-notes', owner: 'Arjun Das', calls: 6, models: cheap, spentShare: 0.2 },
  { name: 'refactor', owner: 'Arjun Das', calls: 26, models: coding, spentShare: 1 },
  { name: 'refactor-scout', owner: 'Arjun Das', parent: 'refactor', calls: 9, models: cheap },
  { name: 'on-call', owner: 'Nikhil Joshi', calls: 11, models: deep, spentShare: 0.35 },
  { name: 'log-reader', owner: 'Nikhil Joshi', parent: 'on-call', calls: 21, models: cheap },
  { name: 'desk', owner: 'Farah Khan', calls: 48, models: cheap, spentShare: 0.62 },
  { name: 'desk-hindi', owner: 'Farah Khan', parent: 'desk', calls: 25, models: ['sarvam-m'] },
  { name: 'desk-tamil', owner: 'Farah Khan', parent: 'desk', calls: 17, models: ['sarvam-m'] },
  { name: 'refunds', owner: 'Farah Khan', parent: 'desk', calls: 8, models: coding },
  { name: 'voice-notes', owner: 'Imran Ali', calls: 10, models: cheap, spentShare: 0.48 },
  { name: 'faq-writer', owner: 'Sana Mirza', calls: 4, models: deep, isPaused: true },
  { name: 'researcher', owner: 'Meera Nair', calls: 22, models: deep, spentShare: 0.91 },
  { name: 'paper-finder', owner: 'Meera Nair', parent: 'researcher', calls: 15, models: cheap },
  { name: 'fact-checker', owner: 'Meera Nair', parent: 'researcher', calls: 13, models: deep },
  { name: 'quote-finder', owner: 'Meera Nair', parent: 'fact-checker', calls: 7, models: cheap },
  { name: 'dataset-cleaner', owner: 'Kavya Iyer', calls: 16, models: cheap, spentShare: 0.55 },
  { name: 'labeller', owner: 'Kavya Iyer', parent: 'dataset-cleaner', calls: 28, models: cheap },
  { name: 'survey', owner: 'Leela Menon', calls: 9, models: deep, spentShare: 0.12 },
  { name: 'translator', owner: 'Rohan Gupta', calls: 19, models: ['sarvam-m', 'gemini-3-flash'] },
  { name: 'evaluator', owner: 'Rohan Gupta', calls: 12, models: coding, spentShare: 0.7 },
  { name: 'evaluator-judge', owner: 'Rohan Gupta', parent: 'evaluator', calls: 14, models: deep },
]

/** A model, with its price in rupees for a million tokens and its usual time for a reply. */
export interface CastModel {
  readonly id: string
  readonly provider: string
  readonly residency: 'india' | 'global'
  readonly inputInr: number
  readonly outputInr: number
  readonly latencyMs: number
}

export const models: readonly CastModel[] = [
  { id: 'claude-sonnet-4.5', provider: 'anthropic', residency: 'global', inputInr: 255, outputInr: 1275, latencyMs: 3_200 },
  { id: 'gpt-5-mini', provider: 'openai', residency: 'global', inputInr: 21, outputInr: 170, latencyMs: 1_400 },
  { id: 'gemini-3-pro', provider: 'google', residency: 'global', inputInr: 170, outputInr: 1020, latencyMs: 2_600 },
  { id: 'gemini-3-flash', provider: 'google', residency: 'global', inputInr: 26, outputInr: 215, latencyMs: 900 },
  { id: 'sarvam-m', provider: 'sarvam', residency: 'india', inputInr: 15, outputInr: 45, latencyMs: 1_100 },
]
/** A provider that is down. Its model has one more route, which answers. */
export const downProvider = 'coastal'
export const downModel = 'coastal-chat'
