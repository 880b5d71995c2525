import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, MoneyField } from '../../ui/forms/money-field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'
import { findTeam, type Workspace, workspacesChanged } from './use-workspaces.ts'

interface CreateWorkspaceProps {
  readonly onClose: () => void
  readonly onMade: (workspace: Workspace) => void
}

/** The form for a new workspace: name, team and budget. */
export function CreateWorkspace({ onClose, onMade }: CreateWorkspaceProps) {
  const [name, setName] = useState('')
  const [team, setTeam] = useState<readonly ComboOption[]>([])
  const [budget, setBudget] = useState(() => choiceOf(null))
  const limit = limitOf(budget)
  const make = useMutation({
    mutationFn: (body: CallOptions<'createWorkspace'>['body']) => api('createWorkspace', { body }),
    onSuccess: async made => {
      await workspacesChanged()
      toast(text.created(made.name))
      onMade(made)
    },
  })
  const error = make.error === null ? null : apiErrorOf(make.error)
  const isNameWrong = error !== null && ['duplicate_workspace', 'bad_name'].includes(error.code)
  const isReady = name.trim() !== '' && limit !== undefined
  return (
    <Dialog
      title={text.create}
      onClose={onClose}
      onSubmit={() => {
        if (!isReady || make.isPending) return
        make.mutate({
          name: name.trim(),
          ...(limit === null ? {} : { monthly_budget_inr: limit }),
          ...(team.length === 0 ? {} : { member_uids: team.map(({ value }) => Number(value)) }),
        })
      }}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={!isReady}>
            {text.createAct}
          </Button>
        </>
      }
    >
      <TextField
        label={text.name}
        placeholder={text.namePlaceholder}
        hint={text.nameHint}
        maxLength={100}
        value={name}
        error={isNameWrong ? error.message : null}
        onChange={event => setName(event.target.value)}
      />
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
      <MoneyField label={text.budget} hint={text.budgetHint} value={budget} onChange={setBudget} />
      {error && !isNameWrong && <InlineError error={error} />}
    </Dialog>
  )
}
