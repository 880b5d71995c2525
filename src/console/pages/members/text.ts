import { askSentence } from '../../app/whom-to-ask.ts'
import { count } from '../../ui/format/numbers.ts'

const people = (number: number): string => (number === 1 ? '1 person' : `${count(number)} people`)

/** Texts of the members and invitations. */
export const text = {
  title: 'Members',
  intro: 'The people of the organisation, what they may do and what they spend.',
  invite: 'Invite people',
  personal: 'A personal organisation has one member. To work with others, make a team organisation and switch to it.',
  search: 'Search members',
  searchHint: 'Name, address or id',
  role: 'Role',
  anyRole: 'All roles',
  roles: { owner: 'Owner', admin: 'Admin', member: 'Member' },
  roleHints: {
    owner: 'Does everything, and decides about roles, provider keys and settings.',
    admin: 'Manages keys, agents, budgets, members and workspaces. Cannot change roles.',
    member: 'Uses models with keys and agents of their own, and sees their own spending.',
  },
  state: 'State',
  anyState: 'Everybody',
  states: { active: 'Members', invited: 'Invitations' },
  sort: 'Order',
  sorts: { created: 'Oldest account first', name: 'By name', email: 'By address' },
  noneTitle: 'Nobody fits',
  none: 'No member and no invitation has these filters.',
  clear: 'Clear the filters',
  you: 'You',
  membersTable: 'Members',
  invitationsTable: 'Open invitations',
  invitationsNote: 'An invitation has no end. It is open until the person answers it, or until you withdraw it.',
  waiting: 'Waiting',
  waitingMeans: 'The person has not answered yet.',
  active: 'Active',
  activeMeans: 'Signs in and uses the organisation.',
  aloneTitle: 'You are the only member',
  alone: 'Invite the people you work with. Each gets keys, agents and a budget of their own.',
  notLoaded: 'This member is not among those loaded. They may have left, or are further down the list.',
  capabilities: 'May also see',
  capability: {
    'usage:org:view': { label: 'Usage of the organisation', hint: 'Who used which model, and how much.' },
    'cost:org:view': { label: 'Cost of the organisation', hint: 'What everybody spends, in rupees.' },
    'audit:view': { label: 'The audit trail', hint: 'Who changed what.' },
  },
  nothingMore: 'only their own',
  everything: 'everything',
  acts: (name: string): string => `Acts of ${name}`,
  edit: 'Change role and budget',
  editRole: 'Change the role',
  editRoleHint: 'Applies from the next call on',
  saveRole: 'Save the role',
  rightsSaved: (name: string): string => `What ${name} may do is saved.`,
  lastOwner: 'is the only owner. Make somebody else an owner first, then this person can change or leave.',
  editBudget: 'Set the budget',
  editBudgetHint: 'Rupees in a month of India',
  keys: 'Keys',
  agents: 'Agents',
  remove: 'Remove',
  leave: 'Leave the organisation',
  removeTitle: 'Remove the member',
  removeAbout: (org: string): [string, string] => ['This ends the membership of ', ` in ${org}. The sessions of this person here end now.`],
  leaveAbout: (org: string): string => `You lose access to ${org}. Only an invitation brings you back.`,
  endsKeys: (number: number, isMore: boolean, names: readonly string[]): string => {
    if (number === 0) return 'No key of this person works here, so no key ends.'
    const named = names.length === 0 ? '' : `: ${new Intl.ListFormat('en').format(names)}${number > names.length || isMore ? ' and others' : ''}`
    return `${isMore ? `More than ${count(number)} keys` : number === 1 ? '1 key' : `${count(number)} keys`} of this person ${number === 1 && !isMore ? 'ends' : 'end'} for good, and running calls with ${number === 1 && !isMore ? 'it' : 'them'} are cut${named}.`
  },
  keepsAgents: (number: number): string =>
    number === 0
      ? 'This person owns no agent.'
      : `${number === 1 ? '1 agent stays' : `${count(number)} agents stay`} with the organisation. Tokens that keys of this person made end, so give ${number === 1 ? 'it' : 'them'} another owner.`,
  endsMore: 'The person also leaves every workspace and shared space. Usage and files stay.',
  removedToast: (name: string): string => `${name} is no longer a member.`,
  addresses: 'Mail addresses',
  addressesHint: 'One or many. Paste a list from a mail or a table: commas, spaces and lines part the addresses.',
  addressesPlaceholder: 'asha@example.com\nravi@example.com',
  found: (number: number): string => (number === 0 ? 'No address yet.' : number === 1 ? '1 address.' : `${count(number)} addresses.`),
  tooMany: (max: number): string => `One invitation takes at most ${max} addresses. Invite the rest afterwards.`,
  inviteAct: (number: number): string => (number < 2 ? 'Invite' : `Invite ${people(number)}`),
  invitedTitle: (number: number): string => (number === 0 ? 'Nobody was invited' : `${people(number)} invited`),
  invitedAbout:
    'Each gets a mail with a link. You can also hand the link over yourself. It has no secret: only who signs in with the invited address can accept.',
  refused: 'These addresses were not invited:',
  refusedAgain: 'Correct them',
  done: 'Done',
  link: 'Hand over the link',
  linkAbout: (email: string): string => `Send this link to ${email} yourself. It has no secret: only who signs in with this address can accept.`,
  resend: 'Send the mail again',
  resent: (email: string): string => `The mail to ${email} is on its way.`,
  withdraw: 'Withdraw',
  withdrawTitle: 'Withdraw the invitation',
  withdrawAbout: (email: string): string => `${email} can no longer accept. You can invite the address again later.`,
  withdrawn: (email: string): string => `The invitation of ${email} is withdrawn.`,
  membersOnly: (owners: readonly string[]): string => `Owners and admins invite people, set budgets and remove members. ${askSentence(owners)}`,
  rolesByOwners: (owners: readonly string[]): string =>
    `Only an owner changes roles. ${owners.length === 0 ? 'Ask an owner.' : `Ask ${new Intl.ListFormat('en', { type: 'disjunction' }).format(owners)}.`}`,
} as const
