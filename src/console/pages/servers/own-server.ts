import type { ReplyOf } from '../../api/call.ts'

export type OwnServer = ReplyOf<'listCustomEndpoints'>['endpoints'][number]
export type Compliance = OwnServer['compliance']

/** What the address of the page says. */
export interface ServersSearch {
  /** The id of the server that is open beside the list. */
  readonly server?: number
  readonly new?: true
}
