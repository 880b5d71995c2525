import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, curlOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { BudgetForm } from '../budgets/form/budget-form.tsx'
import { text } from './text.ts'
import { findTeam, type Workspace, workspacesChanged } from './use-workspaces.ts'

/** A page of members names at most this number of a team. */
const namedMax = 200

interface WorkspacePeekProps {
  /** Null when the workspace is not among those that were read. */
  readonly workspace: Workspace | null
  readonly onArchive: (workspace: Workspace) => void
  readonly onClose: () => void
}

/** One workspace beside the list: its figures, name, team and budget. */
export function WorkspacePeek({ workspace, onArchive, onClose }: WorkspacePeekProps) {
  const me = useMe()
  const owners = useOwners()
  if (workspace === null)
    return (
      <Peek title="Workspace" onClose={onClose}>
        <p className="quiet">{text.notLoaded}</p>
      </Peek>
    )
  const isAdmin = hasRole(me, 'admin')
  const { id, name, archived, keys, member_uids: team, monthly_budget_inr: cap, spend_month_inr: spent } = workspace
  const state = archived ? 'archived' : 'active'
  return (
    <Peek
      title={name}
      subtitle={`id ${id}`}
      onClose={onClose}
      actions={
        <>
          {team.includes(me.user.id ?? 0) && (
            <LinkButton icon="memory" to={`/memory/workspaces/${id}`}>
              {text.memory}
            </LinkButton>
          )}
          <LinkButton icon="usage" to="/usage" search={{ workspace_id: id }}>
            {text.usage}
          </LinkButton>
          {isAdmin && (
            <Button icon={archived ? 'rotate' : 'folder'} onClick={() => onArchive(workspace)}>
              {archived ? text.restore : text.archive}
            </Button>
          )}
        </>
      }
    >
      <div className="stack-3">
        <p className="workspace-state">
          <Status tone={archived ? 'quiet' : 'good'} {...(archived ? { icon: 'folder' as const } : {})}>
            {text.states[state]}
          </Status>
          <span className="quiet">{text.means[state]}</span>
        </p>
        <BudgetBar capInr={cap} spentInr={spent} />
        <TeamFacts team={team} keys={keys} />
      </div>
      {isAdmin ? (
        <>
          <EditWorkspace workspace={workspace} />
          <Fold title={text.setBudget} hint={text.setBudgetHint}>
            <BudgetForm budget={{ scope: 'workspace', id, name, capInr: cap, spentInr: spent }} />
          </Fold>
        </>
      ) : (
        <p className="quiet">{text.membersOnly(owners)}</p>
      )}
      <Fold title="Show as curl">
        <Code text={curlOf('updateWorkspace', { path: { id }, body: { name } })} />
      </Fold>
    </Peek>
  )
}

/** Returns the names of the first members of the organisation, by user id. */
const useNames = () => useQuery({ ...apiQuery('listMembers', { query: { limit: namedMax, state: 'active' } }) })

const nameIn = (members: readonly { readonly uid: number; readonly name: string | null; readonly email: string }[], uid: number): string => {
  const found = members.find(each => each.uid === uid)
  return found?.name ?? found?.email ?? `Member ${uid}`
}

function TeamFacts({ team, keys }: { readonly team: readonly number[]; readonly keys: number }) {
  const members = useNames()
  const names = new Intl.ListFormat('en').format(team.map(uid => nameIn(members.data?.members ?? [], uid)))
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text.team, team.length === 0 ? text.teamSize(0) : names],
    [text.keys, text.keyCount(keys)],
  ]
  return <Facts facts={facts} />
}

function EditWorkspace({ workspace }: { readonly workspace: Workspace }) {
  const members = useNames()
  return (
    <Fold title={text.rename} hint={text.renameHint}>
      <Loaded query={members}>
        {({ members: known }) => (
          <EditForm
            key={`${workspace.name} ${workspace.member_uids}`}
            workspace={workspace}
            team={workspace.member_uids.map(uid => ({ value: String(uid), label: nameIn(known, uid) }))}
          />
        )}
      </Loaded>
    </Fold>
  )
}

const isSame = (a: readonly ComboOption[], b: readonly ComboOption[]): boolean =>
  a.length === b.length && a.every(({ value }) => b.some(each => each.value === value))

/** The form for name and team. Only what differs is sent. */
function EditForm({ workspace, team: before }: { readonly workspace: Workspace; readonly team: readonly ComboOption[] }) {
  const [name, setName] = useState(workspace.name)
  const [team, setTeam] = useState(before)
  const change = useMutation({
    mutationFn: (body: CallOptions<'updateWorkspace'>['body']) => api('updateWorkspace', { path: { id: workspace.id }, body }),
    onSuccess: async () => {
      await workspacesChanged()
      toast(text.saved)
    },
  })
  const body = {
    ...(name.trim() === workspace.name ? {} : { name: name.trim() }),
    ...(isSame(team, before) ? {} : { member_uids: team.map(({ value }) => Number(value)) }),
  }
  const isReady = Object.keys(body).length > 0 && name.trim() !== ''
  const error = change.error === null ? null : apiErrorOf(change.error)
  const isNameWrong = error !== null && ['duplicate_workspace', 'bad_name'].includes(error.code)
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isReady && !change.isPending) change.mutate(body)
      }}
    >
      <TextField label={text.name} maxLength={100} value={name} error={isNameWrong ? error.message : null} onChange={event => setName(event.target.value)} />
      <Combobox
        label={text.team}
        hint={text.teamHint}
        placeholder={text.teamPlaceholder}
        name="workspace team"
        isMultiple
        value={team}
        onChange={setTeam}
        search={findTeam}
      />
      {error && !isNameWrong && <InlineError error={error} />}
      <div>
        <Button look="primary" type="submit" isBusy={change.isPending} disabled={!isReady}>
          {text.save}
        </Button>
      </div>
    </form>
  )
}
