/** A fixed set of 2,000 tools: 40 services with 5 kinds of things each, and 10 actions on each thing. */

/** One service a line: slug, product, and its things with what each is. */
const services = `
trackly|Trackly|issue: a bug or feature request that developers work on; sprint: a fixed period of team work; epic: a large goal that many issues serve; milestone: a date that work must meet; worklog: hours that somebody spent
codehost|CodeHost|repository: source code with its history; pull-request: proposed changes that wait for review; branch: a line of development; commit: one recorded change; code-comment: a remark on a line of code
buildpipe|BuildPipe|pipeline: steps that build and test software; build: one run of a pipeline; artifact: a file that a build produced; runner: a machine that runs builds; build-variable: a value that builds read
deployer|Deployer|deployment: a version that goes to an environment; environment: a place where software runs, such as staging; rollback: a return to the version before; feature-flag: a switch for a part of the software; release-note: what changed in a version
cloudops|CloudOps|virtual-machine: a computer in the cloud; load-balancer: spreads traffic over machines; dns-record: maps a host name to an address; certificate: proves the identity of a host over TLS; firewall-rule: permits or blocks network traffic
datastore|DataStore|database: a managed SQL database; backup: a copy from which a database is restored; table: rows and columns; query: a saved SQL statement; replica: a copy of a database that follows it
loglens|LogLens|log-stream: lines that programs write; alert-rule: a condition that notifies people; dashboard: charts of measurements; trace: the path of one request through services; metric: a measurement over time
pagerly|Pagerly|incident: an outage or degradation that responders handle; on-call-schedule: who responds at what time; escalation-policy: whom to notify next; postmortem: what was learned after an outage; status-page: what customers read about availability
secretbox|SecretBox|secret: a credential that programs read; encryption-key: encrypts data; access-policy: who may read what; audit-event: a record of an access; service-account: an identity of a program
idhub|IdHub|user: a person who can sign in; group: users with equal rights; role: a set of permissions; login-session: a browser or device that is signed in; mfa-device: a second factor for signing in
helpdesk|HelpDesk Pro|ticket: a request of a customer for support; macro: a prepared answer; satisfaction-rating: how happy a customer was; sla-policy: how fast agents must answer; support-queue: tickets that wait for an agent
chatline|ChatLine|channel: a place where a team talks; message: text that somebody posted; reaction: an emoji on a message; thread: answers to a message; huddle: a spontaneous voice call
mailroom|MailRoom|email: an electronic letter; mailbox: the letters of one address; mail-filter: moves incoming letters; signature: text below outgoing letters; contact-group: addresses that get the same letters
calendary|Calendary|event: an appointment with time and attendees; calendar: the appointments of a person; meeting-room: a room that can be reserved; availability: when a person is free; reminder: a notification before an appointment
docspace|DocSpace|document: a text that people write together; folder: holds documents; template: a text to begin from; comment: a remark in a document; revision: an earlier state of a document
sheetly|Sheetly|spreadsheet: cells with numbers and formulas; chart: a graph of cells; pivot-table: sums of cells by category; named-range: a named block of cells; macro-script: automates a spreadsheet
slidecast|SlideCast|presentation: slides for an audience; slide: one page of a presentation; speaker-note: what the speaker says; theme: colours and fonts; slide-image: a picture on a slide
filevault|FileVault|file: bytes with a name; shared-link: an address under which others get a file; file-version: an earlier content of a file; upload-request: asks others for files; storage-quota: how much space somebody has
crmly|CRMly|lead: somebody who may buy; opportunity: a possible sale with an amount; account: a company that buys; contact: a person at a company; quote: an offer with prices
marketeer|Marketeer|campaign: a marketing action over several channels; newsletter: a regular letter to subscribers; audience-segment: people with something in common; landing-page: a web page for a campaign; coupon: a code that reduces a price
adplace|AdPlace|advertisement: a paid placement; keyword-bid: what a click on a search word may cost; ad-budget: the most that placements may cost; conversion: an action after a click; creative: the picture or video of a placement
shopfront|ShopFront|product: something that the shop sells; order: what a customer bought; cart: what a customer is about to buy; product-review: the opinion of a customer; discount: a reduced price
stockroom|StockRoom|inventory-item: a thing on a shelf; warehouse: a building with shelves; stock-transfer: a movement between buildings; supplier: a company that delivers; purchase-order: what is ordered from a supplier
parcelo|Parcelo|shipment: a parcel on its way; tracking-event: where a parcel was seen; delivery-address: where a parcel goes; courier: a company that carries parcels; customs-form: a declaration for a border
paygate|PayGate|payment: money from a customer; refund: money back to a customer; payout: money to a bank account; dispute: a customer contests a payment; payment-link: an address where customers pay
invoicer|Invoicer|invoice: asks a customer for money; credit-note: corrects an invoice; subscription: a regular charge; tax-rate: the percentage of a tax; dunning-letter: reminds a late payer
ledgerly|Ledgerly|journal-entry: a booking in the accounts; bank-account: an account at a bank; expense-report: what an employee paid for the company; cost-center: a unit that causes cost; balance-sheet: assets and liabilities at a day
payrollo|PayRollo|payslip: what an employee earned in a month; salary: the agreed earnings; bonus: an extra amount; deduction: an amount that is withheld; bank-detail: where earnings go
peoplehub|PeopleHub|employee: somebody who works here; leave-request: asks for days off; performance-review: a talk about results; org-unit: a department; onboarding-plan: the first weeks of a newcomer
hirely|Hirely|candidate: somebody who applies; job-posting: an open position; interview: a talk with an applicant; offer-letter: proposes employment; scorecard: the verdict of an interviewer
learnly|Learnly|course: lessons about a subject; enrollment: a learner in a course; quiz: questions with answers; training-certificate: proof that a learner finished; lesson: one unit of a course
surveyor|Surveyor|survey: questions to many people; response: the answers of one person; question: one thing that is asked; panel: people who answer; poll: one quick question
signdesk|SignDesk|envelope: papers to be signed; signer: a person who signs; signing-template: prepared papers; signed-copy: the finished papers; seal: marks papers as unchanged
lexfile|LexFile|contract: an agreement between parties; clause: one paragraph of an agreement; legal-matter: a case of the legal team; obligation: something that a party owes; nda: a promise of silence
travelo|Travelo|trip: a journey with its bookings; flight: a seat in a plane; hotel-stay: nights in a hotel; train-ticket: a seat in a train; visa-application: asks to enter a country
fleetly|Fleetly|vehicle: a car or truck; driver: somebody who drives; route: stops in an order; fuel-card: pays at the pump; maintenance-job: repairs and inspections
buildwatch|BuildWatch|building: a property with rooms; room-sensor: measures temperature and air; access-badge: opens doors; cleaning-task: keeps rooms clean; visitor-pass: lets a guest in
medibook|MediBook|patient: a person under treatment; appointment: a visit at a doctor; prescription: medicine that a doctor orders; lab-result: values of a blood test; referral: sends somebody to a specialist
newsdesk|NewsDesk|article: a text for readers; press-release: a statement for journalists; editor-note: a remark for authors; photo: a picture with its rights; syndication-feed: articles for other sites
mediahub|MediaHub|video: a moving picture; podcast-episode: a spoken programme; playlist: media in an order; subtitle: text below a moving picture; live-broadcast: happens while people watch
`
  .trim()
  .split('\n')

/** The actions on a thing, with what a server writes about them. */
const actions: Readonly<Record<string, readonly [description: (one: string, many: string, product: string) => string, parameters: readonly string[]]>> = {
  list: [(_one, many, product) => `Returns ${many} of ${product}, newest first. Use the cursor for further pages.`, ['limit', 'cursor', 'sort_by']],
  get: [(one, _many, product) => `Retrieves a single ${one} from ${product} with all of its fields.`, ['id', 'expand']],
  search: [(_one, many, product) => `Full-text search over ${many} in ${product}. Supports boolean operators.`, ['query', 'limit']],
  create: [(one, _many, product) => `Creates a ${one} in ${product} and returns its identifier.`, ['title', 'description', 'custom_fields']],
  update: [(one, _many, product) => `Modifies fields of an existing ${one} in ${product}. Fields that are left out stay unchanged.`, ['id', 'fields']],
  delete: [(one, _many, product) => `Permanently deletes a ${one} from ${product}. This cannot be undone.`, ['id', 'confirm']],
  archive: [(one, _many, product) => `Archives a ${one}, so that it is hidden from default views of ${product}.`, ['id']],
  export: [(_one, many, product) => `Exports ${many} of ${product} to a CSV or JSON file and returns its download URL.`, ['format', 'date_range']],
  assign: [(one, _many, product) => `Assigns a ${one} in ${product} to a user or a team.`, ['id', 'assignee']],
  share: [(one, _many, product) => `Grants users or groups access to a ${one} in ${product}.`, ['id', 'recipients', 'permission']],
}

/** The definitions of one service, as an MCP server lists them. */
export interface ManyTools {
  readonly slug: string
  readonly tools: Record<string, unknown>[]
}

/** Returns every service with its 50 tools. */
export function manyTools(): ManyTools[] {
  return services.map(line => {
    const [slug = '', product = '', things = ''] = line.split('|')
    return { slug, tools: things.split('; ').flatMap(thing => toolsOf(thing, product)) }
  })
}

function toolsOf(thing: string, product: string): Record<string, unknown>[] {
  const [noun = '', meaning = ''] = thing.split(': ')
  const one = noun.replaceAll('-', ' ')
  const many = one.endsWith('y') && !/[aeo]y$/.test(one) ? `${one.slice(0, -1)}ies` : /(?:s|x|ch|sh)$/.test(one) ? `${one}es` : `${one}s`
  return Object.entries(actions).map(([action, [describe, parameters]]) => {
    const isMany = action === 'list' || action === 'search' || action === 'export'
    return {
      name: `${action}-${isMany ? many.replaceAll(' ', '-') : noun}`,
      title: `${action[0]?.toUpperCase()}${action.slice(1)} ${isMany ? many : one}`,
      description: `${describe(one, many, product)} A ${one} is ${meaning}.`,
      inputSchema: {
        type: 'object',
        properties: Object.fromEntries(
          parameters.map(name => [name, { type: name === 'limit' ? 'integer' : 'string', description: `The ${name.replaceAll('_', ' ')}.` }]),
        ),
        required: parameters.slice(0, 1),
      },
    }
  })
}
