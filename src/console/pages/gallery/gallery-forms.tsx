import { useState } from 'react'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { Fold, RadioCards, Segmented } from '../../ui/forms/choices.tsx'
import { Combobox, type ComboOption } from '../../ui/forms/combobox.tsx'
import { NumberField, SelectField, TextField } from '../../ui/forms/field.tsx'
import { choiceOf, MoneyField } from '../../ui/forms/money-field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Menu, MenuItem, MenuLine } from '../../ui/overlays/menu.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { SecretPanel } from '../../ui/overlays/secret-panel.tsx'
import { rows } from './samples.ts'

const find = (text: string): Promise<readonly ComboOption[]> =>
  Promise.resolve(
    rows.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())).map(({ id, name }) => ({ value: String(id), label: name, hint: `#${id}` })),
  )

/** The fields and the windows. */
export function GalleryForms() {
  const [money, setMoney] = useState(choiceOf(500))
  const [purpose, setPurpose] = useState('calls')
  const [metric, setMetric] = useState('spend')
  const [isOn, setOn] = useState(true)
  const [things, setThings] = useState<readonly ComboOption[]>([])
  const [open, setOpen] = useState<'none' | 'confirm' | 'secret' | 'peek'>('none')
  const close = (): void => setOpen('none')
  return (
    <Panel title="Forms and windows">
      <div className="stack-5">
        <TextField label="Name" hint="1 to 100 characters." placeholder="Laptop" />
        <TextField label="Address" defaultValue="not an address" error="This is not a URL." isOptional />
        <NumberField label="Requests a minute" placeholder="No limit" />
        <SelectField label="Ends">
          <option>In 90 days</option>
          <option>Never</option>
        </SelectField>
        <MoneyField label="Budget a month" value={money} onChange={setMoney} />
        <RadioCards
          label="What for"
          value={purpose}
          onChange={setPurpose}
          options={[
            { value: 'calls', label: 'Calls of models', hint: 'It manages nothing.' },
            { value: 'all', label: 'Everything' },
          ]}
        />
        <Check label="May make more" hint="Within its own limits." isChecked={isOn} onChange={setOn} />
        <Combobox label="Things" name="gallery" isMultiple value={things} onChange={setThings} search={find} placeholder="All things" />
        <div className="gallery-row">
          <Segmented
            label="Metric"
            value={metric}
            onChange={setMetric}
            options={[
              { value: 'spend', label: 'Spend' },
              { value: 'calls', label: 'Calls' },
            ]}
          />
          <Menu label="More" trigger={<Icon name="more" />}>
            <MenuItem icon="edit">Edit</MenuItem>
            <MenuLine />
            <MenuItem icon="trash" isDanger>
              Delete
            </MenuItem>
          </Menu>
          <Button onClick={() => setOpen('confirm')}>Confirm</Button>
          <Button onClick={() => setOpen('secret')}>Secret</Button>
          <Button onClick={() => setOpen('peek')}>Peek</Button>
        </div>
        <Fold title="Limits" hint="Budget, rate">
          <NumberField label="Concurrent calls" />
        </Fold>
      </div>
      {open === 'confirm' && (
        <Confirm title="End the agent" act="End agent" nameToType="lead" isBusy={false} error={null} onConfirm={close} onClose={close}>
          <p>
            This ends <strong>lead</strong> and 3 children for good.
          </p>
        </Confirm>
      )}
      {open === 'secret' && (
        <SecretPanel
          title="The key is ready"
          secret="br-sample-not-a-key"
          variable="BRIGADE_KEY"
          clients={[{ id: 'curl', label: 'curl', text: 'curl …' }]}
          onDone={close}
        >
          <p>This is the only time that it is shown.</p>
        </SecretPanel>
      )}
      {open === 'peek' && (
        <Peek title="lead" subtitle="id 7" onClose={close}>
          <p className="quiet">What is known about one thing.</p>
        </Peek>
      )}
    </Panel>
  )
}
