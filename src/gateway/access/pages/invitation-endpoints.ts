import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import type { InvitationPages } from './invitation-pages.ts'
import { checkOwnPage, type OwnPages } from './own-pages.ts'
import { forBrowser } from './pages.ts'

const row = endpointOf<{ invitationPages: InvitationPages; ownPages: OwnPages }>()
const page = { media: 'text/html' } as const
const browser = z.object({
  accept: z.string().optional(),
  cookie: z.string().optional(),
  origin: z.string().optional(),
  'sec-fetch-site': z.string().optional(),
})
const formMaxBytes = 4096

export const invitationEndpoints = {
  invitationsPage: row({
    at: 'GET /invitations',
    auth: 'public',
    access: {},
    tag: 'sign-in',
    summary: 'Page with the invitations to the signed-in person; mails with invitations lead here.',
    input: { headers: browser },
    output: page,
    errors: ['database_unavailable'],
    handle: ({ invitationPages }, { headers }) => invitationPages.show(headers.cookie),
  }),

  decideInvitation: row({
    at: 'POST /invitations',
    auth: 'public',
    access: {},
    tag: 'sign-in',
    summary: 'Accepts or declines an invitation from that page. The body is a form with the fields id and decision (accept or decline).',
    input: { bodyKind: 'raw', body: z.object({ id: z.string(), decision: z.enum(['accept', 'decline']) }), bodyLimitBytes: formMaxBytes, headers: browser },
    output: page,
    status: 303,
    errors: ['foreign_origin', 'not_found', 'member_cap', 'database_unavailable'],
    handle: ({ invitationPages, ownPages }, { body, headers }, call) =>
      forBrowser(headers.accept, async () => {
        checkOwnPage(headers, ownPages)
        const form = new URLSearchParams(body.toString('utf8'))
        const decision = form.get('decision')
        const id = rowId(form.get('id') ?? '')
        if (id === null || (decision !== 'accept' && decision !== 'decline'))
          throw fail('bad_request', { message: 'The form needs the fields id and decision (accept or decline).' })
        return invitationPages.decide(headers, id, decision === 'accept', call)
      }),
  }),
}
