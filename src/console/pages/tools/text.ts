import { askSentence } from '../../app/whom-to-ask.ts'
import type { Tone } from '../../ui/data/status.tsx'
import { count } from '../../ui/format/numbers.ts'
import type { IconName } from '../../ui/icon.tsx'
import type { ServerTab, ToolsTab } from './search.ts'
import type { AuthKind, Connection, PinState, ToolServer } from './use-tools.ts'

const tools = (many: number): string => (many === 1 ? '1 tool' : `${count(many)} tools`)
const definitions = (many: number): string => (many === 1 ? '1 definition' : `${count(many)} definitions`)

/** How a state is shown: an icon and a word, and a sentence that says what it means. */
interface Shown {
  readonly tone: Tone
  readonly icon?: IconName
  readonly word: string
  readonly means: string
}

/** Why a server could not be read, in a few words. */
const errors: Readonly<Record<NonNullable<ToolServer['last_error']>, string>> = {
  unauthorized: 'It refuses the credential.',
  unavailable: 'It does not answer.',
  timeout: 'It takes too long.',
  too_large: 'It sends too much.',
  protocol: 'It does not answer as MCP says.',
  cancelled: 'The read was cancelled.',
  blocked_address: 'Its address is not permitted.',
  rpc: 'It answers with an error.',
  too_many_tools: 'It has too many tools.',
  credential: 'The saved credential cannot be opened.',
  issuer: 'The issuer of its tokens refuses, or does not answer.',
  connection_required: 'Its tools are read after an owner or admin has connected.',
}

/** Returns how a server is: off, waiting for a connection, unreadable, or on. */
export function healthOf({ state, last_error: error }: Pick<ToolServer, 'state' | 'last_error'>): Shown {
  if (state === 'off') return { tone: 'quiet', word: 'Off', means: 'Nobody can call its tools. Its approvals stay.' }
  if (error === 'connection_required') return { tone: 'warn', icon: 'link', word: 'Needs a connection', means: errors[error] }
  if (error !== null) return { tone: 'bad', word: 'Not readable', means: `${errors[error]} Its approved tools stay.` }
  return { tone: 'good', word: 'On', means: 'Its tools could be read. Its approved tools can be called.' }
}

/** The states of a tool. */
export const pinShown: Readonly<Record<PinState, Shown>> = {
  pending: { tone: 'warn', icon: 'clock', word: 'New', means: 'Nobody has approved a definition of it.' },
  changed: { tone: 'warn', word: 'Changed', means: 'The server shows another definition than the approved one. Nobody can call it.' },
  approved: { tone: 'good', word: 'Approved', means: 'The server shows the approved definition. It can be called.' },
  blocked: { tone: 'bad', icon: 'stop', word: 'Blocked', means: 'Somebody blocked it. An approval ends the block.' },
  gone: { tone: 'quiet', icon: 'bad', word: 'Gone', means: 'The server does not list it any more.' },
}

/** The states of a connection. */
export const connectionShown: Readonly<Record<Connection['state'] | 'none', Shown>> = {
  connected: { tone: 'good', word: 'Connected', means: 'Your agents call its tools as you.' },
  needs_consent: { tone: 'warn', word: 'Connect again', means: 'The issuer does not renew its tokens any more.' },
  none: { tone: 'quiet', icon: 'link', word: 'Not connected', means: 'Calls of your agents are refused until you connect.' },
}

/** What a server can require. */
export const authKinds: Readonly<Record<AuthKind, { readonly label: string; readonly hint: string }>> = {
  none: { label: 'Nothing', hint: 'For a server inside of your network.' },
  header: { label: 'A header', hint: 'The same key for every call. It is sealed, and never shown again.' },
  client_credentials: { label: 'Client credentials', hint: 'Brigade gets tokens of your organisation from an issuer.' },
  oauth_user: { label: 'OAuth for each person', hint: 'Each person connects. Their agents call as that person.' },
}

/** Texts of the pages of tools. */
export const text = {
  title: 'Tools',
  intro: 'MCP servers of your organisation. Agents call their approved tools at the address of Brigade, with their own token, rules and budgets.',
  introMember: (owners: readonly string[]): string => `Owners and admins register servers and approve tools. ${askSentence(owners)}`,
  tabs: { servers: 'Servers', connections: 'My connections', calls: 'Calls' } satisfies Record<ToolsTab, string>,
  register: 'Register a server',
  off: 'The tool gateway is off',
  emptyTitle: 'No server yet',
  empty: 'Register an MCP server. Brigade reads its tools, and you approve those that agents may call.',
  emptyCommand: 'npx brigade tools servers add https://tools.example.com/mcp --name Weather',
  columns: { server: 'Server', state: 'State', tools: 'Tools', credential: 'Credential', price: 'Price of a call', read: 'Last read' },
  approved: (many: number): string => `${count(many)} approved`,
  waiting: (many: number): string => `${count(many)} ${many === 1 ? 'waits' : 'wait'}`,
  allOff: 'Switch all servers off',
  allOffAbout: 'Every tool of every server leaves the lists, and running calls of tools end. Approvals stay. You switch each server on again on its page.',
  allOffDone: (many: number): string => (many === 1 ? '1 server is off.' : `${count(many)} servers are off.`),
  more: 'More acts',

  calls: {
    empty: 'No calls of tools',
    emptyHint: 'Allow an agent to call a tool, on its page. Its calls appear here.',
    none: 'No call fits',
    noneHint: 'No call of a tool has these filters.',
    clear: 'Clear the filters',
    server: 'Server',
    anyServer: 'All servers',
    outcome: 'Outcome',
    anyOutcome: 'All outcomes',
    columns: { time: 'Time', tool: 'Tool', caller: 'Agent and key', price: 'Price', latency: 'Latency', outcome: 'Outcome' },
    note: 'Neither arguments nor results are kept.',
  },

  connections: {
    about: 'These servers take the token of the person behind a call. Your agents and keys call their tools as you, with your connection.',
    emptyTitle: 'No server asks for your connection',
    empty: 'A server that is registered with OAuth for each person appears here.',
    connect: 'Connect',
    again: 'Connect again',
    leaving: (issuer: string): string => `You go to ${issuer} to consent, and come back.`,
    end: 'Disconnect',
    endTitle: 'Disconnect',
    endAbout: (server: string, whose: string): string =>
      `Agents can no longer call the tools of ${server} as ${whose}. Running calls end, and the tokens are revoked at the issuer.`,
    you: 'you',
    ended: 'Disconnected.',
    everybody: 'Connections of all members',
    nobody: 'Nobody is connected.',
    columns: { person: 'Person', state: 'State', scopes: 'Scopes', since: 'Since', server: 'Server' },
    noScopes: 'not stated',
  },

  form: {
    title: 'Register an MCP server',
    act: 'Register',
    name: 'Name',
    namePlaceholder: 'Weather, CRM, …',
    url: 'Address',
    urlPlaceholder: 'https://tools.example.com/mcp',
    urlHint: 'The MCP endpoint (streamable HTTP). A program that speaks over standard input needs an adapter.',
    auth: 'What does it require?',
    headerName: 'Header',
    headerValue: 'Value',
    headerHint: 'Often Bearer and a token. It is sealed at rest, and nobody sees it again.',
    clientId: 'Client id',
    clientIdHint: 'What Brigade is at the issuer. Leave it empty if the issuer takes client-id metadata documents.',
    clientSecret: 'Client secret',
    scopes: 'Scopes',
    scopesHint: 'With spaces between them. Empty: those that the server names.',
    issuer: 'Issuer',
    issuerHint: 'The only one that gets the secret. Empty: the first that the server names.',
    redirect: 'Register this redirect address at the issuer',
    more: 'More',
    moreHint: 'Slug, price, time, place',
    slug: 'Slug',
    slugHint: 'The first part of the names of its tools. It can never be changed.',
    slugPlaceholder: 'made from the name',
    price: 'Price of a call',
    priceHint: 'Rupees that budgets are charged for a call of one of its tools. It is held before the call.',
    free: 'Nothing',
    seconds: 'Seconds that a call may take',
    secondsHint: 'At most 300.',
    secondsPlaceholder: 'the default of the gateway',
    secondsWrong: 'Type a number from 1 to 300, or leave it empty.',
    place: 'Where it keeps data',
    placeHint: 'As you state it. Callers that are bound to India get only servers in India.',
    places: { global: 'Anywhere', india: 'India' },
    test: 'Test',
    testing: 'Brigade reads the tools of the server…',
    testOk: (many: number, era: 'modern' | 'legacy' | null): string =>
      era === null
        ? 'The issuer was found. The tools are read after the first owner or admin has connected.'
        : `Brigade read ${tools(many)}, in the ${era === 'modern' ? 'protocol of 2026-07-28' : 'protocol of 2025-11-25 or older'}.`,
    testFailed: (why: string): string => `The server did not pass the test: ${why}.`,
    testLeftOut: (many: number): string => `${tools(many)} cannot be kept, for example because of a name or a size.`,
    testBlocked: (many: number): string => `${definitions(many)} cannot be approved: they contain characters that a person cannot see.`,
    testMore: (many: number): string => `and ${count(many)} more`,
    made: (name: string, many: number): string => `${name} is registered. ${many === 1 ? '1 tool waits' : `${count(many)} tools wait`} for approval.`,
    madeForPeople: (name: string): string => `${name} is registered. Connect, so that its tools are read.`,
  },

  server: {
    tabs: { tools: 'Tools', connections: 'Connections', settings: 'Settings' } satisfies Record<ServerTab, string>,
    none: 'It was removed, or it belongs to another organisation.',
    noneTitle: 'There is no such server',
    back: 'Tools',
    read: 'Read now',
    readDone: (fresh: number, changed: number, gone: number): string => `${count(fresh)} new, ${count(changed)} changed, ${count(gone)} gone.`,
    turnOff: 'Switch off',
    turnOn: 'Switch on',
    offTitle: 'Switch the server off',
    offAbout: (name: string): string => `The tools of ${name} leave every list, and their running calls end, in every process. Approvals stay.`,
    offDone: (name: string): string => `${name} is off.`,
    onDone: (name: string): string => `${name} is on again.`,
    remove: 'Remove',
    removeTitle: 'Remove the server',
    removeAbout: (name: string): string =>
      `This removes ${name} with its credential, definitions, approvals and connections. Running calls of its tools end. Nobody can undo it.`,
    removeSlug: (slug: string): string => `No server ever gets the slug ${slug} again, so old rules allow nothing.`,
    removed: (name: string): string => `${name} is removed.`,
    facts: { slug: 'slug', read: 'read', unread: 'not read yet', price: 'a call', free: 'free' },
    credentials: { none: 'no credential', header: 'a header', client_credentials: 'client credentials', oauth_user: 'OAuth for each person' } satisfies Record<
      AuthKind,
      string
    >,
  },

  pins: {
    state: 'State',
    any: (many: number): string => `All (${count(many)})`,
    withCount: (word: string, many: number): string => `${word} (${count(many)})`,
    columns: { name: 'Tool', state: 'State', seen: 'Definition since', approved: 'Approved' },
    waits: (fresh: number, changed: number): string =>
      [fresh > 0 ? `${count(fresh)} new` : '', changed > 0 ? `${count(changed)} changed` : ''].filter(part => part !== '').join(' and ') +
      ` ${fresh + changed === 1 ? 'definition waits' : 'definitions wait'} for approval.`,
    waitsHint: 'A definition is text that models read. Look at each before you approve it.',
    showNew: 'Show the new',
    showChanged: 'Show the changed',
    approveAll: 'Approve all new',
    emptyTitle: 'No tool here',
    empty: 'The server shows no tool in this state.',
    unread: 'The tools of the server were not read yet.',
    hidden: 'has hidden characters',
    all: {
      title: 'Approve all new tools',
      about: 'Models of your agents read these definitions, and follow them. Approve all of them together only if you trust the server as a whole.',
      act: (many: number): string => `Approve ${tools(many)}`,
      left: (many: number): string => `${tools(many)} cannot be approved, because of characters that a person cannot see. They stay as they are.`,
      none: 'No new tool can be approved.',
      done: (many: number): string => `${tools(many)} ${many === 1 ? 'is' : 'are'} approved.`,
      list: 'The new tools',
    },
  },

  pin: {
    back: 'All tools',
    approve: 'Approve',
    approveAgain: 'Approve the new definition',
    approved: (name: string): string => `${name} is approved.`,
    block: 'Block',
    blockTitle: 'Block the tool',
    blockAbout: (name: string): string => `Nobody can call ${name} until somebody approves it again. Its running calls end, in every process.`,
    reason: 'Reason',
    reasonHint: 'For people: one line.',
    blocked: (name: string): string => `${name} is blocked.`,
    changes: 'What changed',
    changesNote: 'Between the approved definition and the one that the server shows now',
    before: 'Approved',
    after: 'Now',
    definition: 'Definition',
    definitionNote: 'Text of the server. Nobody has checked that it is true',
    noDescription: 'It has no description.',
    whole: 'The whole definition',
    wholeHint: 'as the hash covers it, members in order',
    arguments: 'Arguments',
    noArguments: 'It takes no arguments.',
    argumentColumns: { name: 'Name', type: 'Type', about: 'Description' },
    required: 'required',
    hints: 'What the server says of it',
    hintWords: {
      readOnlyHint: ['it only reads', 'it changes something'],
      destructiveHint: ['it can destroy', 'it destroys nothing'],
      idempotentHint: ['a second call changes nothing more', 'a second call acts again'],
      openWorldHint: ['it reaches other systems', 'it stays inside'],
    } as Readonly<Record<string, readonly [string, string]>>,
    findings: 'Look at these places',
    blocks: 'This definition cannot be approved: it contains characters that a person cannot see, and a model reads.',
    finding: {
      zero_width: 'a character without width',
      bidi: 'a character that changes the direction of text',
      tag: 'a tag character',
      variation: 'an unusual variation selector',
      control: 'a control character',
      remote_ref: 'a reference to another document',
    } as Readonly<Record<string, string>>,
    facts: {
      hash: 'Hash',
      own: 'Name at the server',
      first: 'First seen',
      seen: 'Definition since',
      approved: 'Approved',
      blocked: 'Blocked',
      gone: 'Gone since',
    },
    by: (name: string): string => `by ${name}`,
    copyHash: 'Copy the hash',
  },

  settings: {
    title: 'Settings',
    credential: 'Replace the credential',
    credentialHint: 'Running calls that began with the old one end',
    now: 'Now',
    save: 'Save',
    saved: 'Saved.',
    urlHint: 'Another host, port or scheme needs the credential again, and ends every approval.',
    callersTitle: 'How agents reach it',
    callersNote: 'Alone, or beside the tools of Brigade',
    alone: 'The server alone, with its resources and prompts',
    merged: 'Its tools beside those of Brigade',
    membersOnly: (owners: readonly string[]): string => `Owners and admins change a server. ${askSentence(owners)}`,
  },
} as const
