/** What a group gives, as the API has it. */
interface Gift {
  readonly group: string
  readonly role: 'member' | 'admin' | null
  readonly workspace_ids: readonly number[]
}

const roles = { member: 'Member', admin: 'Admin' } as const

/** Texts of the panels for sign-in at the issuer of a company. */
export const signInText = {
  title: (name: string): string => `Sign-in with ${name}`,
  about: (name: string, domains: readonly string[]): string =>
    `People with an address of ${domains.join(', ')} who sign in with ${name} join this organisation.`,
  joins: 'They join as',
  joinsAs: (role: 'member' | 'admin'): string => `They join as ${role}.`,
  ...roles,
  groups: 'Groups',
  groupsAbout: 'At each sign-in, people get exactly what their groups give. A group never makes an owner.',
  gives: ({ group, role, workspace_ids: ids }: Gift): string =>
    `${group}: ${[role === null ? '' : roles[role], ids.length === 0 ? '' : `${ids.length === 1 ? 'workspace' : 'workspaces'} ${ids.join(', ')}`].filter(part => part !== '').join(', ')}`,
  noGroups: 'The operator has named no claim with groups for this issuer, so groups give nothing.',
  group: 'Group',
  groupHint: 'Exactly as the issuer states it. Upper and lower case differ.',
  known: 'This group is in the list.',
  role: 'Role',
  noRole: 'No role',
  workspaces: 'Workspaces',
  add: 'Add the group',
  remove: (group: string): string => `Remove ${group}`,
  save: 'Save',
  saved: (name: string): string => `Sign-ins with ${name} follow these rules from now on.`,
  ownersOnly: 'Owners change it.',
} as const
