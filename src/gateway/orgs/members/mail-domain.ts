/** Mail hosts where anybody can get an address. Such an address does not identify an organisation. */
const publicHosts = new Set(
  `aol.com fastmail.com gmail.com gmx.com gmx.de gmx.net googlemail.com hey.com hotmail.com icloud.com live.com mac.com mail.com mail.ru me.com msn.com
   outlook.com pm.me proton.me protonmail.com qq.com rediffmail.com tutanota.com web.de yahoo.co.in yahoo.com yahoo.in yandex.com yandex.ru ymail.com zohomail.in`.split(
    /\s+/,
  ),
)

/**
 * Returns the mail domain of a company in lower case. Returns null for public mail hosts and for hosts without a dot. The domain is only shown and
 * gives no rights.
 */
export function companyDomain(email: string): string | null {
  const host = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
  return host.includes('.') && !publicHosts.has(host) ? host : null
}
