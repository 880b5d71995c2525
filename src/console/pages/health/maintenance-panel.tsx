import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { Tag } from '../../ui/data/status.tsx'
import { exactTime } from '../../ui/format/dates.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { SelectField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text, type Withheld } from './text.ts'

const foundMax = 20

/** Finds routes by a part of their id. The list of routes is one public document. */
async function findRoutes(typed: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const { routes } = await api('health', { signal })
  const words = typed.toLowerCase()
  return routes
    .map(({ provider, model }) => `${provider}/${model}`)
    .filter(route => route.toLowerCase().includes(words))
    .slice(0, foundMax)
    .map(route => ({ value: route, label: route }))
}

/** The routes that are out of use, with a way to take one out of use and to release it. */
export function MaintenancePanel() {
  const maintenance = useQuery(apiQuery('operatorMaintenance'))
  const [isWithholding, setWithholding] = useState(false)
  const [released, setReleased] = useState<string | null>(null)
  return (
    <Panel
      title={text.maintenance}
      note={text.maintenanceNote}
      actions={
        <Button size="sm" icon="pause" onClick={() => setWithholding(true)}>
          {text.withhold}
        </Button>
      }
    >
      <Loaded query={maintenance}>
        {({ withheld }) =>
          withheld.length === 0 ? (
            <p className="quiet">{text.maintenanceNone}</p>
          ) : (
            <ul className="health-rows">
              {withheld.map(one => (
                <WithheldRow key={one.route} withheld={one} onRelease={() => setReleased(one.route)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isWithholding && <Withhold onClose={() => setWithholding(false)} />}
      {released !== null && <Release route={released} onClose={() => setReleased(null)} />}
    </Panel>
  )
}

function WithheldRow({ withheld: { route, set_by: setBy, reason, until }, onRelease }: { readonly withheld: Withheld; readonly onRelease: () => void }) {
  return (
    <li>
      <div className="health-row">
        <p className="health-name">
          <code>{route}</code>
          <Tag>{text.setBy[setBy]}</Tag>
        </p>
        <Button size="sm" aria-label={`${text.release} ${route}`} onClick={onRelease}>
          {text.release}
        </Button>
      </div>
      <p className="quiet">
        {reason}, until {exactTime(until)}
      </p>
    </li>
  )
}

function Withhold({ onClose }: { readonly onClose: () => void }) {
  const [route, setRoute] = useState<readonly ComboOption[]>([])
  const [seconds, setSeconds] = useState('600')
  const chosen = route[0]?.value
  const withhold = useMutation({
    mutationFn: (id: string) => api('setMaintenance', { path: { route: id }, body: { for_s: Number(seconds) } }),
    onSuccess: async made => {
      await invalidate('operatorMaintenance', 'health')
      toast(text.withheldToast(made.route))
      onClose()
    },
  })
  return (
    <Dialog
      title={text.withhold}
      width="sm"
      onClose={onClose}
      onSubmit={() => chosen !== undefined && withhold.mutate(chosen)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" isBusy={withhold.isPending} disabled={chosen === undefined}>
            {text.withholdAct}
          </Button>
        </>
      }
    >
      <p className="prose">{text.withholdAbout}</p>
      <Combobox label={text.route} placeholder={text.routePlaceholder} name="routes" value={route} onChange={setRoute} search={findRoutes} />
      <SelectField label={text.span} value={seconds} onChange={event => setSeconds(event.target.value)}>
        {text.spans.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      {withhold.error && <InlineError error={apiErrorOf(withhold.error)} />}
    </Dialog>
  )
}

function Release({ route, onClose }: { readonly route: string; readonly onClose: () => void }) {
  const release = useMutation({
    mutationFn: () => api('clearMaintenance', { path: { route } }),
    onSuccess: async () => {
      await invalidate('operatorMaintenance', 'health')
      toast(text.releasedToast(route))
      onClose()
    },
  })
  const [before, name, after] = text.releaseAbout(route)
  return (
    <Confirm
      title={text.releaseTitle}
      act={text.release}
      isBusy={release.isPending}
      error={release.error && apiErrorOf(release.error)}
      onConfirm={() => release.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{name}</strong>
        {after}
      </p>
    </Confirm>
  )
}
