import { comparedEmail } from '../../../platform/values/email-address.ts'

/** Mail hosts where anybody can get an address. Such an address does not identify an organisation. */
const publicHosts = new Set(
  `126.com 139.com 163.com 21cn.com aim.com aliyun.com alice.it aol.com att.net bellsouth.net bigpond.com bluewin.ch bol.com.br btinternet.com charter.net cock.li
   comcast.net cox.net daum.net duck.com earthlink.net email.cz email.de fastmail.com fastmail.fm foxmail.com free.fr freenet.de gmail.com gmx.at gmx.ch gmx.com
   gmx.de gmx.net googlemail.com guerrillamail.com hanmail.net hey.com hushmail.com icloud.com in.com inbox.lv inbox.ru indiatimes.com interia.pl laposte.net
   libero.it list.ru live.com mac.com mail.com mail.de mail.ru mailbox.org mailfence.com mailinator.com me.com msn.com naver.com nate.com neuf.fr o2.pl onet.pl
   optonline.net orange.fr outlook.com outlook.in passport.com pm.me posteo.de proton.me protonmail.ch protonmail.com qq.com rambler.ru rediff.com rediffmail.com rocketmail.com
   runbox.com sapo.pt sbcglobal.net seznam.cz sfr.fr shaw.ca sify.com sina.cn sina.com skynet.be sohu.com startmail.com sympatico.ca t-online.de telenet.be telus.net
   temp-mail.org terra.com.br tiscali.it tuta.com tuta.io tutanota.com tutanota.de tutamail.com uol.com.br ukr.net verizon.net virgilio.it virginmedia.com vsnl.com
   wanadoo.fr web.de wp.pl ya.ru yeah.net yopmail.com ymail.com zoho.com zoho.in zohomail.com zohomail.in`.split(/\s+/),
)
/** Hosts with names of many countries: yahoo.co.in, hotmail.fr, live.nl. */
const publicFamilies = /^(yahoo|ymail|hotmail|live|outlook|msn|gmx|yandex|aol|windowslive)(\.[a-z]{2,3}){1,2}$/

/** Returns whether anybody can get an address of this domain. The domain is in lower case. */
export function isPublicMailDomain(domain: string): boolean {
  return publicHosts.has(domain) || publicFamilies.test(domain)
}

/** Returns the domain of an address with its ASCII letters in lower case. */
export const mailDomainOf = (email: string): string => comparedEmail(email.slice(email.lastIndexOf('@') + 1))

/**
 * Returns the mail domain of a company in lower case. Returns null for public mail hosts and for hosts without a dot. The domain is only shown and
 * gives no rights.
 */
export function companyDomain(email: string): string | null {
  const host = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
  return host.includes('.') && !isPublicMailDomain(host) ? host : null
}
