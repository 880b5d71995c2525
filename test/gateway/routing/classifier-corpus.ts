/** Short prompts as people write them, grouped by the capability that a person would choose. One prompt per line. */

const lines = (text: string): readonly string[] => text.trim().split('\n')

export const corpus: Readonly<Record<'code' | 'math' | 'multilingual' | 'reasoning' | 'general', readonly string[]>> = {
  code: [
    ...lines(`
Write a Python function that reverses a linked list
Why does my React component re-render on every keystroke?
Fix this: \`\`\`js let x = [1,2,3].map(n => n*2 \`\`\`
How do I merge two dictionaries in Python?
TypeError: Cannot read properties of undefined (reading 'map')
Explain what this regex does: ^[a-z0-9]+$
Convert this SQL query to use a window function: SELECT id, MAX(price) FROM orders GROUP BY id
What is the difference between let and const in JavaScript?
Write unit tests for utils.py
My docker build fails with exit code 1, how do I debug it?
Implement binary search in Rust
git rebase keeps giving me merge conflicts
Create a REST API endpoint in FastAPI that returns a list of users
How can I center a div with CSS?
Refactor src/app.ts so that it has no global variables
Write a bash script that renames all jpg files by date
What does segmentation fault mean in C++?
Generate a TypeScript interface from this JSON
How do I use async await with fetch in javascript
kubectl get pods shows CrashLoopBackOff, what now
Write a SQL query to find duplicate rows
public static void main(String[] args) { System.out.println("hi"); }
How to deserialize JSON in Go into a struct
Explain the borrow checker in Rust with an example program
Write a regex to match an email address
Traceback (most recent call last): File "a.py", line 3, in <module>
Make this for loop faster: for i in range(len(xs)): total += xs[i]
Add type hints to this: def add(a, b): return a + b
What is a closure in JavaScript?
Optimize this Postgres query, it does a seq scan
Build a todo app component in Vue
How do I write a Dockerfile for a Node.js app?
Implement an LRU cache class in Java
Why is my Go goroutine leaking?  func worker(ch chan int) {}
npm install fails with ERESOLVE
write a web scraper in python with beautifulsoup
How do I parse a YAML file in Ruby?
Debug this code, the loop never ends
Write a Terraform module for an S3 bucket
Explain the difference between a thread and a process in Java code
how do i undo the last git commit
Write a function to check whether a string is a palindrome
Please review this pull request diff: - const a = 1; + let a = 2;
Python mein ek function likho jo list ko sort kare
error[E0382]: borrow of moved value: \`x\`
Convert this Python script to Kotlin
How do I mock a method in Jest?
Set up eslint and prettier for a TypeScript repository
What's the time complexity of quicksort algorithm, show code
Write a GraphQL schema for a blog
`),
  ],
  math: [
    ...lines(`
Solve x^2 - 5x + 6 = 0
What is the integral of sin(x) dx?
If a train travels 60 km in 45 minutes, how far does it go in 2 hours?
Find the derivative of 3x^2 + 2x
What is 15% of 240?
Prove that the square root of 2 is irrational
Calculate 123 * 456
What is the probability of rolling two sixes with two dice?
A shop sells 12 pens for 60 rupees. How many pens can I buy for 150 rupees?
Find the eigenvalues of the matrix [[2,1],[1,2]]
Evaluate \\int_0^1 x^2 dx
How many permutations of the letters in MATH are there?
Simplify (2x + 3)(x - 1)
What is the area of a circle with radius 7?
Compute the determinant of a 3x3 matrix
Is 97 a prime number? Prove it with factorial reasoning.
Solve the system: x + y = 10, x - y = 4
What is the limit of 1/x as x approaches infinity? Use calculus.
A box has 3 red and 5 blue balls. What is the probability of drawing a red one?
Factor the polynomial x^3 - 8
What is the sum of the first 100 integers?
Find the hypotenuse of a right triangle with legs 3 and 4
log(100) + log(10) = ?
If 3 workers build a wall in 12 days, how long will 4 workers take?
Differentiate y = e^x * cos x
Show that ∑ 1/n² converges
What is 7! divided by 5!
How many ways can 5 people sit in a row?  Use combinatorics.
Convert 3/8 to a decimal and a percent
What is the gcd of 48 and 180?
The sum of two numbers is 30 and their difference is 6. Find the numbers.
Calculate the compound interest on 10000 at 8% for 3 years
Solve for x: 2x + 7 = 21
What is the standard deviation of 2, 4, 4, 4, 5, 5, 7, 9? variance too
Explain Bayes theorem with an example
Ravi is 3 times as old as his son, who is 8. How old is Ravi?
What is the quadratic formula?
What is 2 + 2?
Evaluate the limit of (sin x)/x as x goes to 0
17 mod 5
`),
  ],
  multilingual: [
    ...lines(`
नमस्ते, आप कैसे हैं?
मुझे दिल्ली के बारे में बताओ
इस वाक्य का अंग्रेज़ी में अनुवाद करें
भारत की राजधानी क्या है?
বাংলাদেশের রাজধানী কোথায়?
আমি আজ খুব খুশি
একটি ছোট গল্প লিখুন
வணக்கம், எப்படி இருக்கீங்க?
தமிழ்நாட்டின் தலைநகரம் எது?
எனக்கு ஒரு கவிதை எழுதுங்கள்
మీరు ఎలా ఉన్నారు?
హైదరాబాద్ గురించి చెప్పండి
ನಮಸ್ಕಾರ, ಹೇಗಿದ್ದೀರಾ?
ಬೆಂಗಳೂರಿನ ಹವಾಮಾನ ಹೇಗಿದೆ?
നമസ്കാരം, സുഖമാണോ?
കേരളത്തെക്കുറിച്ച് പറയൂ
તમે કેમ છો?
મને ગુજરાતીમાં એક વાર્તા કહો
ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ?
ਪੰਜਾਬ ਬਾਰੇ ਦੱਸੋ
ଆପଣ କେମିତି ଅଛନ୍ତି?
ଓଡ଼ିଶା ବିଷୟରେ କୁହନ୍ତୁ
آپ کیسے ہیں؟
مجھے لاہور کے بارے میں بتائیں
महाराष्ट्राची राजधानी कोणती आहे?
What does नमस्ते mean in English?
Translate "धन्यवाद" to Tamil please
你好，请介绍一下北京
Привет, как дела?
東京の天気はどうですか
안녕하세요
مرحبا، كيف حالك؟
aap kaise ho bhai
mujhe ek kahani sunao
kya haal hai
mera paisa kab milega bhai
yeh kaise kaam karta hai samjhao
tum kahan ja rahe ho
mujhe job chahiye lekin experience nahi hai
aaj ka mausam kaisa hai
order abhi tak nahi aaya kya karu
mere liye ek chhoti si kavita likho
enna panra machan
naan romba busy ah irukken
eppadi irukkinga
enakku oru joke sollu
ithu epdi work aagum nu konjam sollunga
nee enga irukka, enakku konjam help pannu
ela unnaru
naaku oka katha cheppandi
meeru ekkada unnaru
nenu telugu lo matladali, ela cheyali
hegiddira, yelli idira neevu
nanage ondu kathe heli, swalpa beku
nimma hesaru yenu, yaava ooru nimma
enthanu vishesham, sukhamano
enikku oru katha parayu, venam
njan evide pokum, ningal parayamo
kemon acho tumi
ami tomake ekta golpo bolbo, tumi bolo
amar jonno ekta kobita likhe dao
tumhi kase aahat, mala sanga
mala ek goshta sanga, tula yete ka aahe
kem chho, majama
mane ek varta kaho, tame shu karo chho
tusi kiven ho veere
mainu dasso ki haal hai tuhada
apana kemiti achhanti
tume kouthi achha, mote kahibi
mujhe samajh nahi aa raha hai ki kya karna chahiye
bhai ye phone accha hai ya nahi, batao
office ke liye ek email likh do, boss ko chutti ke liye
aapka refund kal tak aa jayega kya
dost ke birthday ke liye kya gift dena chahiye
`),
  ],
  reasoning: [
    ...lines(`
Think step by step: which switch controls the bulb?
Compare microservices and monoliths and weigh the trade-offs for a small team
What are the pros and cons of remote work?
If all bloops are razzies and all razzies are lazzies, are all bloops lazzies?
Analyze the causes of the 2008 financial crisis
What would happen if the moon disappeared?
A says B is lying, B says C is lying, C says both lie. Who is telling the truth?
Argue both for and against universal basic income
Design an experiment to test whether plants grow faster with music
Explain why inflation can hurt savers more than borrowers
Evaluate the assumptions behind this argument and find its fallacy
Plan a migration strategy for moving 200 employees to a new office
Solve this riddle: I speak without a mouth
Critique the following business plan
Which is better for a first time buyer, renting or buying? Justify it.
What are the implications of quantum computing for banking security?
Work through this dilemma: a self-driving car must choose between two harms
Deduce who owns the fish from these clues
Why did the Roman empire fall when it seemed so strong for centuries?
Assess whether raising the minimum wage reduces employment
Develop a strategy for entering the Indian market with limited budget
Identify the premises and the conclusion of this argument
First gather the facts, then consider each option, and finally recommend one
Reason carefully about which of these three witnesses is unreliable
Root cause analysis for a drop in customer satisfaction
Compare the foreign policies of two countries with each other and conclude who gained
What are the advantages and disadvantages of nuclear power?
Under what conditions would a cartel remain stable?
Come up with a plan to reduce our support backlog by half
Three people are sitting next to each other; from these hints find out who sits in the middle
`),
  ],
  general: [
    ...lines(`
Hello!
Write a poem about the monsoon
What is the capital of France?
Recommend a good movie for tonight
Summarize this paragraph for me
Who wrote Pride and Prejudice?
Give me a recipe for butter naan bread
Write a birthday message for my sister
What time zone is Mumbai in?
Tell me a joke
Draft an email to my landlord about a leaking tap
What is photosynthesis?
How do I remove a coffee stain from a shirt?
Suggest names for a puppy
Best places to visit in Kerala in December
Translate hello to French
What is the weather usually like in Goa?
Write a short story about a lighthouse keeper
Who won the cricket world cup in 2011?
How tall is Mount Everest?
Give me three gift ideas for my dad
What does the word serendipity mean?
Make this sentence more polite: send me the file
Rewrite this in a friendly tone
List five healthy breakfast options
What are the symptoms of the flu?
How to tie a tie
Is it safe to eat raw mushrooms?
Tell me about the Taj Mahal
Where do pythons live?
What is the tallest building in Dubai?
I love java coffee from Indonesia
My friend Anna lives in Pan Street
What should I cook for dinner?
Write a slogan for a bakery
How is the word class used in sociology?
What are some good books on Indian history?
Explain the plot of Hamlet
Give me a caption for a sunset photo
Who is the prime minister of India?
How long does it take to boil an egg?
When was the telephone invented?
Write a thank-you note
What is the best time to plant tomatoes?
Describe a rainy evening in two sentences
Can dogs eat chocolate?
Namaste! What does that word mean?
Who are you?
What languages do people speak in Chennai?
How are you doing today?
The main hall is near the kal river; tell me its story
I have a menu and a pan, what can I cook?
Help me write a resume summary for a nurse
What is the difference between a crocodile and an alligator?
Give me a packing list for Ladakh
Proofread: Their going to the park tomorow
How do vaccines work?
Is Bangalore a good city to live in?
Write a toast for a wedding function
Do you like tea or coffee?
How do I get to the train station from here?
`),
  ],
}
