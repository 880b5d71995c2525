import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { apiQuery, invalidate } from '../../../api/queries.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import '../runs.css'
import { GrantRequest } from './grant-request.tsx'
import { amountText, answerOf, type BudgetRequest, subjectText, text } from './request-text.ts'

/** A member gets no hint of a new request, so that the list is read again this often. */
const readAgainMs = 15_000
const openMax = 50

/** The requests that wait for an answer. Nothing is shown when there are none. `areBudgets` leaves out those for runs. */
export function OpenRequests({ areBudgets = false }: { readonly areBudgets?: boolean }) {
  const open = useQuery({ ...apiQuery('listBudgetRequestsConsole', { query: { state: 'open', limit: openMax } }), refetchInterval: readAgainMs })
  const requests = (open.data?.requests ?? []).filter(({ scope }) => !areBudgets || scope !== 'run')
  if (requests.length === 0) return null
  return (
    <Panel title={text.title} note={text.note} isFlush>
      <RequestTable requests={requests} />
    </Panel>
  )
}

/** The requests for one run, with their answers. */
export function RunRequests({ runId, agentId, keyId }: { readonly runId: string; readonly agentId: number | null; readonly keyId: number | null }) {
  const all = useQuery({ ...apiQuery('listBudgetRequestsConsole', { query: { run_id: runId, limit: openMax } }), refetchInterval: readAgainMs })
  return (
    <Panel title={text.title} note={text.note} isFlush>
      <Loaded query={all}>
        {({ requests }) => {
          const ofRun = requests.filter(({ agent_id: agent, key_id: key }) => agent === agentId && key === keyId)
          return ofRun.length === 0 ? <p className="quiet panel-note">{text.none}</p> : <RequestTable requests={ofRun} />
        }}
      </Loaded>
    </Panel>
  )
}

/** Reads again everything that a decision changes. */
const decided = (): Promise<void> => invalidate('listBudgetRequestsConsole', 'listRunsConsole', 'getRunConsole', 'orgBudgets')

function RequestTable({ requests }: { readonly requests: readonly BudgetRequest[] }) {
  const [granting, setGranting] = useState<BudgetRequest | null>(null)
  const refuse = useMutation({
    mutationFn: ({ id }: BudgetRequest) => api('decideBudgetRequest', { path: { id: String(id) }, body: { approve: false } }),
    onSuccess: async ({ request }) => {
      await decided()
      toast(text.refused(request))
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
  const columns: readonly Column<BudgetRequest>[] = [
    { key: 'what', head: text.what, isName: true, cell: request => <MiddleCut text={subjectText(request)} max={34} /> },
    { key: 'asks', head: text.asks, cell: ({ amount_inr: inr, calls }) => <span className="tabular">{amountText(inr, calls)}</span> },
    { key: 'why', head: text.why, cell: ({ reason }) => <span className="request-reason">{reason}</span> },
    { key: 'by', head: text.by, isOnCards: false, cell: ({ asked_by: by }) => by.name ?? `${by.kind} ${by.id}` },
    { key: 'when', head: text.when, isOnCards: false, cell: ({ asked_at: at }) => <Time at={at} /> },
    {
      key: 'answer',
      head: text.answer,
      align: 'end',
      cell: request =>
        request.may_decide ? (
          <span className="request-acts">
            <Button size="sm" look="primary" aria-label={text.grantOf(request)} onClick={() => setGranting(request)}>
              {text.grant}
            </Button>
            <Button
              size="sm"
              aria-label={text.refuseOf(request)}
              isBusy={refuse.isPending && refuse.variables.id === request.id}
              onClick={() => refuse.mutate(request)}
            >
              {text.refuse}
            </Button>
          </span>
        ) : (
          <Status tone={answerOf(request).tone} title={request.state === 'open' ? text.notYours : undefined}>
            {answerOf(request).words}
          </Status>
        ),
    },
  ]
  return (
    <>
      <Table label={text.title} columns={columns} rows={requests} rowKey={({ id }) => id} />
      {granting && (
        <GrantRequest
          request={granting}
          onClose={() => setGranting(null)}
          onDone={async request => {
            setGranting(null)
            await decided()
            toast(text.granted(request))
          }}
        />
      )}
    </>
  )
}
