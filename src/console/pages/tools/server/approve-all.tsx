import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type Pin, type ToolServer, toolsChanged } from '../use-tools.ts'

const pageSize = 200
/** The gateway takes at most this number of definitions in one approval, and a server has no more tools. */
const approvedMax = 1_000

/** Reads all new tools of a server. An approval names each of them with its hash. */
async function newTools(serverId: string, signal: AbortSignal): Promise<readonly Pin[]> {
  const found: Pin[] = []
  let cursor: string | null = null
  do {
    const query = { state: 'pending' as const, limit: pageSize, ...(cursor === null ? {} : { cursor }) }
    const page: { tools: Pin[]; next_cursor: string | null } = await api('listServerTools', { path: { id: serverId }, query, signal })
    found.push(...page.tools)
    cursor = page.next_cursor
  } while (cursor !== null && found.length < approvedMax)
  return found.slice(0, approvedMax)
}

/** Approves every new tool that can be approved, after a look at their names. */
export function ApproveAll({ server, onClose }: { readonly server: ToolServer; readonly onClose: () => void }) {
  const fresh = useQuery({ queryKey: ['listServerTools', 'new', server.id], queryFn: ({ signal }) => newTools(server.id, signal), staleTime: 0 })
  const ready = fresh.data?.filter(({ approvable }) => approvable) ?? []
  const left = (fresh.data?.length ?? 0) - ready.length
  const approve = useMutation({
    mutationFn: () => api('approveTools', { path: { id: server.id }, body: { tools: ready.map(({ name, hash }) => ({ name, hash })) } }),
    onSuccess: async ({ approved }) => {
      await toolsChanged()
      toast(text.pins.all.done(approved))
      onClose()
    },
    onError: () => void fresh.refetch(),
  })
  return (
    <Dialog
      title={text.pins.all.title}
      onClose={onClose}
      onSubmit={() => ready.length > 0 && !approve.isPending && approve.mutate()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={approve.isPending} disabled={ready.length === 0}>
            {text.pins.all.act(ready.length)}
          </Button>
        </>
      }
    >
      <p>{text.pins.all.about}</p>
      <Loaded query={fresh}>
        {() =>
          ready.length === 0 ? (
            <p className="quiet">{text.pins.all.none}</p>
          ) : (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls must take the focus, so that keys can scroll it.
            <ul className="tool-names tool-names-long" aria-label={text.pins.all.list} tabIndex={0}>
              {ready.map(({ name }) => (
                <li key={name}>
                  <code>{name}</code>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {left > 0 && <p className="quiet">{text.pins.all.left(left)}</p>}
      {approve.error && <InlineError error={apiErrorOf(approve.error)} />}
    </Dialog>
  )
}
